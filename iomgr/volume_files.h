// The names of a volume's own files, and its lock, for those who make, move and
// check them (volume.h has the picture).
//
//   .graphlane/tmp/    imports under construction, on the volume's filesystem, so
//                      that a rename puts them in place; see staging.h
//   .graphlane/run/lock   shared by whoever makes or removes parts, exclusive for
//                      who must know that nobody does (check with repair)
#pragma once

#include <string>

#include "iomgr/volume.h"

namespace graphlane {

inline constexpr char kVolumeJson[] = ".graphlane/volume.json";
inline constexpr char kStagingDirectory[] = ".graphlane/tmp";
inline constexpr char kLockFile[] = ".graphlane/run/lock";

// "DIRECTORY/graphlane-<uuid>"
std::string device_root(const std::string& directory, const Uuid& uuid);

// Holds the volume's lock until it is destroyed; the kernel releases it if we
// are killed. EBUSY: somebody holds it in a way that excludes us; nobody waits.
class VolumeLock {
 public:
  enum Mode { kShared, kExclusive };
  static Outcome<VolumeLock> take(const Volume& volume, Mode mode);

 private:
  explicit VolumeLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace graphlane
