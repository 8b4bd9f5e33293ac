#include "iomgr/volume/striped_volume.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <vector>

#include "iomgr/base/fd.h"

namespace graphlane {
namespace fs = std::filesystem;
namespace {

// Of a stack of devices. /sys has no loops, but more than this nobody builds.
constexpr int kDepthMax = 4;

std::string word_in(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// The profile of its data: "raid0", "raid10"; "": it does not stripe.
std::string btrfs_profile(int fd) {
  constexpr size_t kSlots = 32;
  const size_t size = sizeof(btrfs_ioctl_space_args) + kSlots * sizeof(btrfs_ioctl_space_info);
  const std::unique_ptr<char[]> memory(new char[size]());
  auto* const args = reinterpret_cast<btrfs_ioctl_space_args*>(memory.get());
  args->space_slots = kSlots;
  if (::ioctl(fd, BTRFS_IOC_SPACE_INFO, args) != 0) return {};
  for (uint64_t i = 0; i < args->total_spaces && i < kSlots; ++i) {
    const uint64_t flags = args->spaces[i].flags;
    if ((flags & BTRFS_BLOCK_GROUP_DATA) == 0) continue;
    if ((flags & BTRFS_BLOCK_GROUP_RAID0) != 0) return "raid0";
    if ((flags & BTRFS_BLOCK_GROUP_RAID10) != 0) return "raid10";
  }
  return {};
}

std::string striped_btrfs(int fd) {
  const std::string profile = btrfs_profile(fd);
  btrfs_ioctl_fs_info_args info = {};
  if (profile.empty() || ::ioctl(fd, BTRFS_IOC_FS_INFO, &info) != 0 || info.num_devices < 2) {
    return {};
  }
  return fmt::format("btrfs {} over {} devices", profile, static_cast<uint64_t>(info.num_devices));
}

std::string striped_below(const fs::path& device, int depth) {
  const fs::path of_disk = fs::exists(device / "partition") ? device / ".." : device;
  const std::string level = word_in(of_disk / "md/level");
  if (level == "raid0" || level == "raid10" || level == "raid5" || level == "raid6" ||
      level == "raid4") {
    return fmt::format("md {} over {} devices", level, word_in(of_disk / "md/raid_disks"));
  }
  std::error_code error;
  std::vector<fs::path> below;
  for (fs::directory_iterator at(of_disk / "slaves", error), end; !error && at != end;
       at.increment(error)) {
    below.push_back(at->path());
  }
  if (below.size() > 1) {
    const bool is_lvm = word_in(of_disk / "dm/uuid").starts_with("LVM-");
    return fmt::format("{} over {} devices", is_lvm ? "LVM" : "device mapper", below.size());
  }
  return below.size() == 1 && depth < kDepthMax ? striped_below(below[0], depth + 1) : "";
}

}  // namespace

std::string striped_block_device(dev_t device, const fs::path& block_devices) {
  std::error_code error;
  const fs::path found =
      fs::canonical(block_devices / fmt::format("{}:{}", major(device), minor(device)), error);
  return error ? "" : striped_below(found, 0);
}

std::string os_striped_volume(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct statfs filesystem;
  struct stat st;
  if (!fd || ::fstatfs(fd.get(), &filesystem) != 0 || ::fstat(fd.get(), &st) != 0) return {};
  return filesystem.f_type == BTRFS_SUPER_MAGIC ? striped_btrfs(fd.get())
                                                : striped_block_device(st.st_dev);
}

}  // namespace graphlane
