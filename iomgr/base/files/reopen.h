// Opens the file behind a descriptor once more: another open file description, with other flags.
// It needs neither the file's name nor its directory, and works on a file without a name. No
// allocation, no exceptions.
#pragma once

#include "iomgr/base/fd.h"

namespace graphlane {

// "/proc/self/fd/7": a descriptor as a path.
struct ProcPath {
  explicit ProcPath(int fd) {
    char digits[12];
    int length = 0;
    for (unsigned n = static_cast<unsigned>(fd); n > 0 || length == 0; n /= 10) {
      digits[length++] = static_cast<char>('0' + n % 10);
    }
    char* end = text + sizeof "/proc/self/fd/" - 1;
    while (length > 0) *end++ = digits[--length];
  }
  const char* c_str() const { return text; }
  char text[32] = "/proc/self/fd/";
};

// Uses sys::, as Fd's close does: ThreadSanitizer follows libc's open() and would miss the close.
inline Fd reopen(int fd, int flags) {
  return Fd(sys::openat(AT_FDCWD, ProcPath(fd).c_str(), flags | O_CLOEXEC));
}

// As reopen(), to read or write a stub on our own behalf: a program's access time stays. The host
// permits that to root and the file's owner; for others the time moves.
inline Fd reopen_keeping_atime(int fd, int flags) {
  Fd opened = reopen(fd, flags | O_NOATIME);
  return opened || errno != EPERM ? std::move(opened) : reopen(fd, flags);
}

}  // namespace graphlane
