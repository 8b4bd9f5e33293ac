// What a program may do by a descriptor of a striped file.
//
// Without a mount the descriptor is the stub's, and the kernel has it open for
// *reading*, whatever the program asked for: so a write that no preload library
// sees (libc's own, a raw system call, a program that is not preloaded) fails with
// EBADF, and can never tear the stub. What was asked for is kept where dup, fork,
// exec and sockets carry it along: in the open file description, as the signal of
// F_SETSIG, which means nothing for a regular file. The two values are libc's own
// signals, which no program can choose.
#pragma once

#include <fcntl.h>

#include <cstdint>

namespace graphlane {

enum class Access : uint8_t { kNone = 0, kRead = 1, kWrite = 2, kBoth = 3 };

constexpr bool may_read(Access access) { return (static_cast<int>(access) & 1) != 0; }
constexpr bool may_write(Access access) { return (static_cast<int>(access) & 2) != 0; }

// Of open(2)'s flags.
constexpr Access access_of_flags(int flags) {
  if ((flags & O_PATH) != 0) return Access::kNone;
  switch (flags & O_ACCMODE) {
    case O_RDONLY: return Access::kRead;
    case O_WRONLY: return Access::kWrite;
    default: return Access::kBoth;
  }
}

// Of open(2)'s flags, with the access mode that the program asked for.
constexpr int flags_with_access(int flags, Access access) {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY, O_RDWR};
  return (flags & ~O_ACCMODE) | kModes[static_cast<int>(access)];
}

// What the program may do by a descriptor whose F_GETFL is `flags`.
Access access_of(int fd, int flags);

// Marks a descriptor that is open for reading. 0 or an errno.
int grant(int fd, Access access);

}  // namespace graphlane
