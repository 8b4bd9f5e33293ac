// Whether a volume may be trusted that was found by looking upwards from a file.
//
// The nearest directory with a .graphlane is the volume. In a shared folder any user can make one,
// and name other devices in it, or those of a real volume. That would decide where the new files of
// others go, and which server shares their reads. So it counts only if its owner owns the folder,
// or is root, or is this process's user. Otherwise the search goes on upwards.
//
// (Within a user namespace, all users that it does not know look the same.)
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "iomgr/base/sys.h"

namespace graphlane {

// `control` is DIRECTORY/.graphlane itself, without following a link.
constexpr bool may_be_trusted(const struct stat& directory, const struct stat& control,
                              uid_t user) {
  return S_ISDIR(control.st_mode) &&
         (control.st_uid == 0 || control.st_uid == user || control.st_uid == directory.st_uid);
}

enum class FoundVolume { kNone, kTrusted, kUntrusted };

// Checks the volume at the two paths; `json` is the volume.json.
inline FoundVolume find_volume_at(const char* directory, const char* control, const char* json) {
  struct stat above, made, record;
  if (::syscall(SYS_newfstatat, AT_FDCWD, json, &record, 0) != 0 ||
      ::syscall(SYS_newfstatat, AT_FDCWD, directory, &above, 0) != 0 ||
      ::syscall(SYS_newfstatat, AT_FDCWD, control, &made, AT_SYMLINK_NOFOLLOW) != 0) {
    return FoundVolume::kNone;
  }
  const auto user = static_cast<uid_t>(::syscall(SYS_geteuid));
  return may_be_trusted(above, made, user) ? FoundVolume::kTrusted : FoundVolume::kUntrusted;
}

}  // namespace graphlane
