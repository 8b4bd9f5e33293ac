// A volume's home: which directory is the volume.
//
//   VOL/.graphlane/volume.json   home = inode and birth time of VOL/.graphlane    epoch e
//   DEVICE_i/…/device.json       home, the same                                   epoch e, or e - 1
//
// The uuid alone does not tell a volume from a copy of its directory (cp -a, a restored backup, a
// snapshot). A program that repaired or changed files by the copy would take the parts of the real
// one. So a directory that lies in another inode than it says is refused. A clone of the whole
// filesystem, or a snapshot, has the same inode: of two, the one that lags in epoch is refused.
// Before either has changed they cannot be told apart.
//
// The epoch is raised once in each process that changes striped files, before the first change: in volume.json
// first, then on the devices. A device that lags by more than one is of an older copy.
//
// `graphlane adopt` makes a directory the home, when the other one is gone.
#pragma once

#include <vector>

#include "iomgr/volume/volume.h"
#include "iomgr/volume/volume_json.h"

namespace graphlane {

// The home that the directory `root_fd` and its .graphlane make now; the epoch is 0. An errno.
Result<VolumeHome> look_at_home(int root_fd);

bool is_same_home(const VolumeHome& named, const VolumeHome& seen);

// Whether the directory is the devices' home, as volume.json and each device.json say. ESTALE: it is a copy,
// or lags; ENODEV: a device is of an older copy. `root` is what messages call the directory.
Outcome<void> check_home(const VolumeRecord& volume, const std::vector<DeviceRecord>& devices,
                         const VolumeHome& seen, const std::string& root);

// Makes the directory the home of the volume, in format 2, with an epoch that no other has had. Killed in between, it
// is refused until this is done again.
Outcome<void> take_home(const Volume& volume);

// Excludes processes that raise the epoch or rewrite volume.json. Waits two seconds: EBUSY.
class HomeLock {
 public:
  static Outcome<HomeLock> take(const Volume& volume);

 private:
  explicit HomeLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace graphlane
