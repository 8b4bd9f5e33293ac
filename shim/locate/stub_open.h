// Without a mount: opening a striped file to write, and making one where the
// volume's policy says that a new file of this name is striped.
//
// Threads: everything is safe from any.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace graphlane {

// Whether this open is ours to do; then *fd is open(2)'s result, with errno. To be
// left to libc: what only reads, ordinary files, and all that lies on a mount.
bool open_stub(int directory, const char* path, int flags, mode_t mode, int* fd);

// Whether that may be a stub which this process may write, but not read: libc, opening it to write,
// would tear it.
bool may_be_unreadable_stub(int directory, const char* path, int flags);

// The same as open_stub() for truncate(2).
bool truncate_stub(const char* path, off_t size, int* status);

}  // namespace graphlane
