#include "iomgr/base/process/hidden_io.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "iomgr/base/setup_cookie.h"

namespace graphlane {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kOwnArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kOwnArchitecture = AUDIT_ARCH_AARCH64;
#elif defined(__riscv)
constexpr uint32_t kOwnArchitecture = AUDIT_ARCH_RISCV64;
#endif

constexpr uint32_t offset_of_cookie() {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);  // the lower half comes first
  return offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);
}

}  // namespace

Result<void> hide_unseen_io() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      // 32-bit programs do not load the library
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOwnArchitecture, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_setup, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset_of_cookie()),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSetupCookie, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
  };
  const sock_fprog filter = {.len = sizeof program / sizeof program[0], .filter = program};
  // Filters all threads, or the existing ones would go on.
  constexpr unsigned kAllThreads = SECCOMP_FILTER_FLAG_TSYNC;
  // CAP_SYS_ADMIN
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kAllThreads, &filter) == 0) return {};
  if (::syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kAllThreads, &filter) == 0) {
    return {};
  }
  return last_errno();
}

}  // namespace graphlane
