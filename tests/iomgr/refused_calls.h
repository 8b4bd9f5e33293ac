// Processes with a seccomp filter that refuses some system calls, as filesystems do that tests
// cannot have.
#pragma once

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <span>

namespace graphlane {

inline bool filter_calls(std::span<sock_filter> program) {
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                          .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

// Runs `body` with its expectations in a process after `refuse`.
inline void run_refused(bool (*refuse)(), const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    EXPECT_TRUE(refuse());
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// NFS neither exchanges names nor checks that the new one is free.
inline void without_rename_flags(const std::function<void()>& body) {
  run_refused(
      [] {
        constexpr unsigned kFlagsLow = offsetof(seccomp_data, args) + 4 * sizeof(uint64_t);
        sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlagsLow),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        return filter_calls(program);
      },
      body);
}

// A server may have no room for written data.
inline void where_close_fails(const std::function<void()>& body) {
  run_refused(
      [] {
        sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        return filter_calls(program);
      },
      body);
}

}  // namespace graphlane
