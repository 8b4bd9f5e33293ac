// NamesHeld: the names of stubs and parts stay as they are for `graphlane check`
// while it compares the two. Whoever changes them holds the volume's lock shared, and
// waits while check has it (FORMAT.md, "Locks"): a stub that moved from where check
// has not been to where it has would seem to be gone, and a repair would take its
// parts.
//
// An open-file-description lock, as those of stubs are (stub_lock.h): who has the volume to read,
// whoever that is, can keep a check from its work, but not everybody from theirs, as with flock(2).
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <fcntl.h>

#include <cerrno>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/regular_file.h"

namespace graphlane {

inline constexpr char kLockFile[] = ".graphlane/run/lock";

// F_RDLCK or F_WRLCK of the whole lock file, at once or (F_OFD_SETLKW) when it can be had; the
// latter wants a descriptor that is open for writing. False: errno, EAGAIN if others have it.
inline bool lock_names(int lock_fd, short type, int command) {
  struct flock wanted = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  if (sys::fcntl(lock_fd, command, reinterpret_cast<intptr_t>(&wanted)) == 0) return true;
  if (errno == EACCES) errno = EAGAIN;
  return false;
}

// The lock file of the volume's directory. Opens only a regular file.
inline Fd open_lock_file(int root_fd, int flags) {
  return open_regular(root_fd, kLockFile, flags, 0644);
}

class NamesHeld {
 public:
  // `root_fd` is the volume's directory.
  explicit NamesHeld(int root_fd)
      : file_(open_lock_file(root_fd, O_RDONLY | O_CREAT)) {
    while (file_ && !lock_names(file_.get(), F_RDLCK, F_OFD_SETLKW) && errno == EINTR) continue;
  }

 private:
  Fd file_;  // none: who may not even open the lock file, moves no stubs
};

}  // namespace graphlane
