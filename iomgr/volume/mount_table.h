// The mounts of volumes that this process sees, from /proc/self/mountinfo. They
// have the type "fuse.graphlane", and the volume's root as their source.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace graphlane {

inline constexpr char kMountType[] = "fuse.graphlane";

struct VolumeMount {
  std::string point;        // where it is mounted
  std::string volume_root;  // what is mounted there
  uid_t user = 0;           // the user that mounted it, and runs its daemon
};

// A field of fstab or mountinfo, with \040 and the like replaced by blank, tab, newline, backslash
// (proc(5)).
std::string unescape_mount_field(const std::string& text);

// In the order of mounting; at one place the last mount is visible. Empty without /proc.
std::vector<VolumeMount> list_volume_mounts();

// The mount with `path` as its root; `path` contains no links.
std::optional<VolumeMount> find_volume_mount(const std::string& path);

}  // namespace graphlane
