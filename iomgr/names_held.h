// NamesHeld: the names of stubs and parts stay as they are for `graphlane check`
// while it compares the two. Whoever changes them holds the volume's lock shared, and
// waits while check has it (FORMAT.md, "Locks"): a stub that moved from where check
// has not been to where it has would seem to be gone, and a repair would take its
// parts.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/file.h>

#include <cerrno>

#include "iomgr/base/fd.h"

namespace graphlane {

inline constexpr char kLockFile[] = ".graphlane/run/lock";

class NamesHeld {
 public:
  // `root_fd` is the volume's directory.
  explicit NamesHeld(int root_fd)
      : file_(sys::openat(root_fd, kLockFile, O_RDONLY | O_CREAT | O_CLOEXEC, 0644)) {
    while (file_ && ::syscall(SYS_flock, file_.get(), LOCK_SH) != 0 && errno == EINTR) continue;
  }

 private:
  Fd file_;  // none: who may not even open the lock file, moves no stubs
};

}  // namespace graphlane
