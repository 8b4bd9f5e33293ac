// syscall(2): system calls by number, as Node.js, Julia, Rust and libaio's users make them.
//
// A number that concerns files is answered as the function of that name: a read goes to the
// devices, statx(2) tells the file's size. A call that cannot be answered on a stub fails with EIO.
// All other numbers jump to libc's syscall() (raw_entry.cc).
#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "iomgr/base/sys.h"
#include "shim/fd/open_file.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

constexpr long kNumbersMax = 512;

// Opcodes of io_uring_register(2).
constexpr unsigned kRegisterFiles = 2;

template <class T>
T* pointer(long argument) {
  return reinterpret_cast<T*>(argument);
}

long refused(Refusal refusal, int fd) {
  explain_once(refusal, fd);
  errno = EIO;
  return -1;
}

bool is_a_stub(int fd) { return fd >= 0 && acquire_stub(fd, Group::raw); }

// Calls without a function in libc.
long submit_blocks(long context, long count, iocb** blocks) {
  for (long i = 0; blocks != nullptr && i < count; ++i) {
    if (blocks[i] == nullptr) continue;
    const int fd = static_cast<int>(blocks[i]->aio_fildes);
    if (is_a_stub(fd)) return refused(Refusal::kSubmit, fd);
  }
  return ::syscall(SYS_io_submit, context, count, blocks);
}

long register_in_ring(long ring, long operation, const int* fds, long count) {
  if (static_cast<unsigned>(operation) == kRegisterFiles && fds != nullptr) {
    for (long i = 0; i < count; ++i) {
      if (is_a_stub(fds[i])) return refused(Refusal::kSubmit, fds[i]);
    }
  }
  return ::syscall(SYS_io_uring_register, ring, operation, fds, count);
}

long open_by_how(int directory, const char* path, const open_how* how, long size) {
  Layout layout;
  const bool ours = how != nullptr && size >= static_cast<long>(sizeof *how) && how->resolve == 0 &&
                    is_stub_at(directory, path, 0, &layout);
  if (ours) {
    return hook_openat(directory, path, static_cast<int>(how->flags),
                       static_cast<mode_t>(how->mode));
  }
  const long fd = ::syscall(SYS_openat2, directory, path, how, size);
  if (fd >= 0) forget(static_cast<int>(fd));
  return fd;
}

}  // namespace

// The numbers that answer() handles, as a table of bytes.
struct Numbers {
  unsigned char known[kNumbersMax] = {};
  constexpr Numbers() {
#define CALL_BY_NUMBER(number, answer) known[number] = 1;
#include "shim/hooks/numbers.def"
  }
};
extern "C" __attribute__((visibility("hidden"))) constinit const Numbers graphlane_known_numbers{};

// Turns "-errno" into libc's form: sets errno, returns -1.
extern "C" __attribute__((visibility("hidden"))) long graphlane_fail(long error) {
  errno = static_cast<int>(-error);
  return -1;
}

// hook_syscall() jumps here with the arguments that it was called with.
extern "C" __attribute__((visibility("hidden"))) long graphlane_answer(long number, long a, long b,
                                                                       long c, long d, long e,
                                                                       long f) {
  const int fd = static_cast<int>(a);
  switch (number) {
#define CALL_BY_NUMBER(call, answer) \
  case call: return answer;
#include "shim/hooks/numbers.def"
    default: return ::syscall(number, a, b, c, d, e, f);
  }
}

}  // namespace graphlane::shim

extern "C" __attribute__((visibility("hidden"))) void* graphlane_next_syscall;  // raw_entry.cc

namespace graphlane::shim {
namespace {

__attribute__((constructor)) void find_next_syscall() {
  if (void* const next = real::resolve("syscall"); next != nullptr) graphlane_next_syscall = next;
}

}  // namespace
}  // namespace graphlane::shim
