// NameLock: keeps the names of stubs and parts as they are for `graphlane check`.
//
// A process that changes names holds the volume's lock shared, and waits while check has it
// exclusively (FORMAT.md, "Locks"). Otherwise a stub that moves during the check could be missed,
// and a repair would take its parts.
//
// It is an open-file-description lock, like those of stubs (stub_lock.h). A process that may only
// read the volume can delay a check with it. With flock(2) it could block every process.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <fcntl.h>

#include <cerrno>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/regular_file.h"

namespace graphlane {

inline constexpr char kLockFile[] = ".graphlane/run/lock";

// Locks the whole lock file with F_RDLCK or F_WRLCK: at once, or (F_OFD_SETLKW) once it is free.
// F_WRLCK needs a descriptor open for writing. False: errno; EAGAIN: another process has it.
inline bool lock_names(int lock_fd, short type, int command) {
  struct flock wanted = {
      .l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  if (sys::fcntl(lock_fd, command, reinterpret_cast<intptr_t>(&wanted)) == 0) return true;
  if (errno == EACCES) errno = EAGAIN;
  return false;
}

// The lock file of the volume's directory. Opens only a regular file.
inline Fd open_lock_file(int root_fd, int flags) {
  return open_regular(root_fd, kLockFile, flags, 0644);
}

class NameLock {
 public:
  NameLock() = default;
  // Waits while a check has the names. `root_fd` is the volume's directory.
  explicit NameLock(int root_fd) : file_(open_lock_file(root_fd, O_RDONLY | O_CREAT)) {
    while (file_ && !lock_names(file_.get(), F_RDLCK, F_OFD_SETLKW) && errno == EINTR) continue;
  }
  // As the constructor, without waiting. False: a check has the names.
  bool try_take(int root_fd) {
    file_ = open_lock_file(root_fd, O_RDONLY | O_CREAT);
    return !file_ || lock_names(file_.get(), F_RDLCK, F_OFD_SETLK) || errno != EAGAIN;
  }

 private:
  Fd file_;  // empty: a process that may not open the lock file moves no stubs
};

}  // namespace graphlane
