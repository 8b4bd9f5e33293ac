// What kind of device a file lies on, and what follows from it.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/types.h>

namespace graphlane {

// What /sys/dev/block says of the block device under a filesystem; a partition's queue is its
// disk's. (Virtual machines' devices often say that they are disks.)
enum class DeviceKind { kNone, kDisk, kSsd };  // kNone: no block device, or several: tmpfs, btrfs, NFS
DeviceKind device_kind(dev_t filesystem);

// The disk that a filesystem lies on, to compare: of a partition, the whole disk's number. Where there is
// no block device, the filesystem's own.
dev_t disk_of(dev_t filesystem);

inline bool is_rotational(dev_t filesystem) { return device_kind(filesystem) == DeviceKind::kDisk; }

}  // namespace graphlane
