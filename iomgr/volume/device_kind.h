// The kind of device that a file lies on, and what follows from it.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

namespace graphlane {

// As /sys/dev/block tells for the block device under a filesystem. A partition has the queue of its
// disk. (Virtual devices often claim to be disks.)
// kNone: no block device, or several: tmpfs, btrfs, NFS
enum class DeviceKind { kNone, kDisk, kSsd };
DeviceKind device_kind(dev_t filesystem);

// A number of the disk that a filesystem lies on, for comparisons; for a partition, the whole
// disk's number. Without a block device, the filesystem's own number.
dev_t disk_of(dev_t filesystem);

inline bool is_rotational(dev_t filesystem) { return device_kind(filesystem) == DeviceKind::kDisk; }
// The same for the filesystem of an open file or directory.
inline bool is_on_disk(int fd) {
  struct stat st;
  return ::fstat(fd, &st) == 0 && is_rotational(st.st_dev);
}

}  // namespace graphlane
