// Without a mount: opens a striped file for writing, and makes one where the volume's policy
// stripes new files of that name.
//
// Threads: everything is safe from any.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace graphlane::shim {

// Whether the library does this open. If so, *fd is open(2)'s result, with errno. Left to libc are
// opens for reading, ordinary files, and files on a mount.
bool open_stub(int directory, const char* path, int flags, mode_t mode, int* fd);

// Whether this may be a stub that the process may write, but not read: libc would open it for
// writing, and the program would damage it.
bool may_be_unreadable_stub(int directory, const char* path, int flags);

// As open_stub(), for truncate(2).
bool truncate_stub(const char* path, off_t size, int* status);

}  // namespace graphlane::shim
