// Opens a path below a directory that other users may change: no link leads out of it.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <linux/openat2.h>

#include "iomgr/base/sys.h"

namespace graphlane {

// As openat(2) with O_CLOEXEC. Fails with ELOOP on a link on the way: such a link could lead a
// server, perhaps run by root, out of the volume. Kernels before 5.6, and older system call
// filters, check the last name only.
inline int open_below(int root_fd, const char* path, int flags, mode_t mode = 0) {
  flags |= O_CLOEXEC;
  const open_how how{
      .flags = static_cast<uint64_t>(flags), .mode = mode, .resolve = RESOLVE_NO_SYMLINKS};
  const long fd = ::syscall(SYS_openat2, root_fd, path, &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return sys::openat(root_fd, path, flags | O_NOFOLLOW, mode);
}

}  // namespace graphlane
