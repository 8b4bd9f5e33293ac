// The mounts that this process sees, as /proc/self/mountinfo lists them: none
// of these calls touches a mounted filesystem, so a dead one holds nobody up.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane {

inline constexpr char kFilesystemType[] = "fuse.graphlane";

struct MountEntry {
  std::string mountpoint;
  std::string type;
  std::string source;
  std::string device;  // "0:53", as in /sys/class/bdi
};

// Later ones lie over earlier ones.
std::vector<MountEntry> read_mount_table();

// "\040" and the like in `text` become the bytes they stand for.
std::string unescape_mount_field(std::string_view text);

// The topmost Graphlane mount at `mountpoint` (absolute).
std::optional<MountEntry> find_graphlane_mount(const std::string& mountpoint);

// Absolute, without symbolic links; the last name may be a dead mount.
Outcome<std::string> absolute_mountpoint(const std::string& path);

// Whether `path` is `directory` or below it; both absolute.
bool is_within(std::string_view path, std::string_view directory);

// As root: how far ahead the kernel reads on this mount. 128 KiB, its default,
// would cut every buffered read into requests of that size.
void raise_read_ahead(const std::string& device);

}  // namespace graphlane
