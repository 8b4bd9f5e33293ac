// The part of VOL/lost+found that readers need; orphans.h fills it.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include "iomgr/base/fd.h"
#include "iomgr/base/uuid.h"

namespace graphlane {

inline constexpr char kLostAndFound[] = "lost+found";

// Whether the stub is this file's entry in VOL/lost+found, which only the volume's owner can write.
inline bool is_lost_and_found(int volume_root_fd, int stub_fd, const Uuid& file_id) {
  const Fd directory(
      sys::openat(volume_root_fd, kLostAndFound, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat root, above, entry, stub;
  return directory && sys::fstat(volume_root_fd, &root) == 0 &&
         sys::fstat(directory.get(), &above) == 0 && (above.st_mode & 0077) == 0 &&
         (above.st_uid == root.st_uid || above.st_uid == 0) &&
         ::syscall(SYS_newfstatat, directory.get(), UuidText(file_id).c_str(), &entry,
                   AT_SYMLINK_NOFOLLOW) == 0 &&
         sys::fstat(stub_fd, &stub) == 0 && entry.st_ino == stub.st_ino &&
         entry.st_dev == stub.st_dev;
}

}  // namespace graphlane
