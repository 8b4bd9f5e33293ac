// A volume's home: the directory that is the volume.
//
//   VOL/.graphlane/volume.json   home = inode and birth time of VOL/.graphlane    epoch e
//   DEVICE_i/…/device.json       home, the same                                   epoch e, or e - 1
//
// The uuid alone does not tell a volume from a copy of its directory (cp -a, a restored backup, a
// snapshot). Repairs or changes through a copy would take the parts of the real volume. So a
// directory in another inode than it records is refused. A clone of the whole filesystem, or a
// snapshot, has the same inode: of two, the one with the older epoch is refused. Before either has
// changed they cannot be told apart.
//
// A process raises the epoch once, before its first change of a striped file: in volume.json first,
// then on the devices. A device that lags by more than one belongs to an older copy.
//
// `graphlane adopt` makes a directory the home, when the other one is gone.
#pragma once

#include <vector>

#include "iomgr/volume/volume.h"
#include "iomgr/volume/volume_json.h"

namespace graphlane {

// The present identity of the directory `root_fd` and its .graphlane; the epoch is 0. An errno.
Result<VolumeHome> look_at_home(int root_fd);

bool is_same_home(const VolumeHome& named, const VolumeHome& seen);

// Whether the directory is the home that volume.json and each device.json name. ESTALE: it is a
// copy, or lags; ENODEV: a device of an older copy. `root` is its name in messages.
Outcome<void> check_home(const VolumeRecord& volume, const std::vector<DeviceRecord>& devices,
                         const VolumeHome& seen, const std::string& root);

// Makes the directory the home of the volume, in format 2, with a new epoch. After a kill the
// volume is refused until this is done again.
Outcome<void> take_home(const Volume& volume);

// Excludes processes that raise the epoch or rewrite volume.json. Waits two seconds, then EBUSY.
class HomeLock {
 public:
  static Outcome<HomeLock> take(const Volume& volume);

 private:
  explicit HomeLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace graphlane
