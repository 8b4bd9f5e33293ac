// Whether an open of a file would wait for its device, because its name or inode is not in memory.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "iomgr/base/sys.h"

namespace graphlane {

// False where the kernel cannot tell (before Linux 5.12). A missing file is cold, too, until one has
// looked for it. Keeps errno.
inline bool is_cold(int directory_fd, const char* path) {
  const open_how how{.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                     .mode = 0,
                     .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_CACHED};
  const int saved_errno = errno;
  const auto fd = static_cast<int>(::syscall(SYS_openat2, directory_fd, path, &how, sizeof how));
  const bool cold = fd < 0 && errno == EAGAIN;
  if (fd >= 0) sys::close(fd);
  errno = saved_errno;
  return cold;
}

}  // namespace graphlane
