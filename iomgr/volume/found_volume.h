// Whether a volume that was found by looking upwards from a file may be believed.
//
// The nearest directory with a .graphlane is the volume. In a folder that many users may write, any
// user can make one, and name other devices in it, or a real volume's. That would decide where new
// files of others go, and which server shares their reads. So it counts only if its maker owns the
// folder, or is root, or is ourselves; else we look further up.
//
// (Within a user namespace all users that it does not know look alike.)
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "iomgr/base/sys.h"

namespace graphlane {

// `control` is of DIRECTORY/.graphlane itself, no link followed.
constexpr bool may_be_believed(const struct stat& directory, const struct stat& control, uid_t user) {
  return S_ISDIR(control.st_mode) &&
         (control.st_uid == 0 || control.st_uid == user || control.st_uid == directory.st_uid);
}

enum class FoundVolume { kNone, kBelieved, kSomebodyElses };

// Checks the volume at the two paths; `json` is the volume.json.
inline FoundVolume find_volume_at(const char* directory, const char* control, const char* json) {
  struct stat above, made, record;
  if (::syscall(SYS_newfstatat, AT_FDCWD, json, &record, 0) != 0 ||
      ::syscall(SYS_newfstatat, AT_FDCWD, directory, &above, 0) != 0 ||
      ::syscall(SYS_newfstatat, AT_FDCWD, control, &made, AT_SYMLINK_NOFOLLOW) != 0) {
    return FoundVolume::kNone;
  }
  const auto user = static_cast<uid_t>(::syscall(SYS_geteuid));
  return may_be_believed(above, made, user) ? FoundVolume::kBelieved : FoundVolume::kSomebodyElses;
}

}  // namespace graphlane
