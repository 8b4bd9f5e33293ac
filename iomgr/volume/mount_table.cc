#include "iomgr/volume/mount_table.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace graphlane {

std::string unescape_mount_field(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

namespace {

// "rw,user_id=1000,group_id=1000": FUSE's option.
uid_t mount_user_of(const std::string& options) {
  constexpr std::string_view kName = "user_id=";
  const size_t at = options.find(kName);
  return at == std::string::npos
             ? 0
             : static_cast<uid_t>(std::strtoul(&options[at + kName.size()], nullptr, 10));
}

}  // namespace

// 36 35 98:0 /root /mnt/point rw,noatime master:1 - type source options
std::vector<VolumeMount> list_volume_mounts() {
  std::vector<VolumeMount> mounts;
  std::ifstream table("/proc/self/mountinfo");
  for (std::string line; std::getline(table, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string skipped, point, type, source, options;
    before >> skipped >> skipped >> skipped >> skipped >> point;
    after >> type >> source >> options;
    if (type != kMountType) continue;
    mounts.push_back(
        {unescape_mount_field(point), unescape_mount_field(source), mount_user_of(options)});
  }
  return mounts;
}

std::optional<VolumeMount> find_volume_mount(const std::string& path) {
  std::optional<VolumeMount> found;
  for (VolumeMount& mount : list_volume_mounts()) {
    if (mount.point == path) found = std::move(mount);
  }
  return found;
}

}  // namespace graphlane
