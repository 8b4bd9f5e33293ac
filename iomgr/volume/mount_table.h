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

// A field of fstab or mountinfo as it was before blank, tab, newline and backslash became \040 and so on
// (proc(5)).
std::string unescape_mount_field(const std::string& text);

// In the order of mounting; of several at one place the last is seen. Empty
// where there is no /proc.
std::vector<VolumeMount> list_volume_mounts();

// The mount whose root `path` is; a path without links.
std::optional<VolumeMount> find_volume_mount(const std::string& path);

}  // namespace graphlane
