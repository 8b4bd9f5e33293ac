// Whether a directory lies on a striped volume of the operating system's: btrfs, md or device
// mapper (LVM).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace graphlane {

// "btrfs raid0 over 4 devices", "md raid0 over 2 devices", "LVM over 2 devices"; "": on none that
// we can tell. Asks btrfs by its ioctls, which need no privilege, and /sys for the rest. A volume
// of device mapper over several devices counts, because only root may read whether it stripes.
std::string os_striped_volume(const std::string& path);

// The same of a block device, by what lies below `block_devices` ("/sys/dev/block").
std::string striped_block_device(dev_t device,
                                 const std::filesystem::path& block_devices = "/sys/dev/block");

}  // namespace graphlane
