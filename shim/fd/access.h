// The access mode of a program's descriptor of a striped file.
//
// Without a mount the descriptor is the stub's, and the kernel always has it open for *reading*. So
// a write that the library does not see fails with EBADF, and cannot damage the stub. (Such writes
// are libc's own, raw system calls, and those of programs without the library.)
//
// The mode that the program asked for is kept in the open file description, which dup, fork, exec
// and sockets pass on: as the signal of F_SETSIG, which has no meaning for a regular file. The two
// values are libc's own signals, which no program can choose.
#pragma once

#include <fcntl.h>

#include <cstdint>

namespace graphlane::shim {

enum class Access : uint8_t { kNone = 0, kRead = 1, kWrite = 2, kBoth = 3 };

constexpr bool may_read(Access access) { return (static_cast<int>(access) & 1) != 0; }
constexpr bool may_write(Access access) { return (static_cast<int>(access) & 2) != 0; }

// The access mode in open(2)'s flags.
constexpr Access access_of_flags(int flags) {
  if ((flags & O_PATH) != 0) return Access::kNone;
  switch (flags & O_ACCMODE) {
    case O_RDONLY: return Access::kRead;
    case O_WRONLY: return Access::kWrite;
    default: return Access::kBoth;
  }
}

// The flags of open(2), with the access mode that the program asked for.
constexpr int flags_with_access(int flags, Access access) {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY, O_RDWR};
  return (flags & ~O_ACCMODE) | kModes[static_cast<int>(access)];
}

// The program's access by a descriptor with `flags` as its F_GETFL.
Access access_of(int fd, int flags);

// Records the access in a descriptor that is open for reading. 0 or an errno.
int grant(int fd, Access access);

}  // namespace graphlane::shim
