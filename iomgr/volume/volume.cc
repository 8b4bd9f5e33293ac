#include "iomgr/volume/volume.h"

#include <fnmatch.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/parallel_for.h"
#include "iomgr/volume/device_kind.h"
#include "iomgr/volume/found_volume.h"
#include "iomgr/volume/home.h"
#include "iomgr/volume/kind.h"
#include "iomgr/volume/mount_table.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/sum/part_sums.h"
#include "iomgr/volume/volume_files.h"
#include "iomgr/volume/volume_json.h"

namespace graphlane {
namespace fs = std::filesystem;

bool StripePolicy::wants(std::string_view name, uint64_t size_bytes) const {
  return size_bytes > 0 && size_bytes >= size_min_bytes && (globs.empty() || wants_new(name));
}

bool StripePolicy::wants_new(std::string_view name) const {
  const std::string text(name), at_the_end(final_name(name));
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0 ||
           ::fnmatch(glob.c_str(), at_the_end.c_str(), 0) == 0;
  });
}

namespace {

// The error for a directory without this volume's device; says what is there instead.
Error missing_device(const std::string& directory, uint32_t ordinal, const Uuid& volume) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return make_error(ENODEV, "{}: missing: device {} of volume {} is not there", directory,
                      ordinal, UuidText(volume).view());
  }
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("graphlane-")) {
      return make_error(ENODEV, "{}: foreign: holds {}, expected device {} of volume {}", directory,
                        name, ordinal, UuidText(volume).view());
    }
  }
  return make_error(ENODEV,
                    "{}: holds no device of any volume, expected device {} of volume {} "
                    "(not mounted?)",
                    directory, ordinal, UuidText(volume).view());
}

Outcome<void> check_identity(const DeviceRecord& found, const DeviceRecord& expected,
                             const std::string& directory) {
  if (found.volume != expected.volume) {
    return make_error(ENODEV, "{}: foreign: holds a device of volume {}, expected volume {}",
                      directory, UuidText(found.volume).view(), UuidText(expected.volume).view());
  }
  if (found.ordinal != expected.ordinal) {
    return make_error(ENODEV, "{}: holds device {} of volume {}, expected device {} (swapped?)",
                      directory, found.ordinal, UuidText(found.volume).view(), expected.ordinal);
  }
  if (found.device_count != expected.device_count) {
    return make_error(ENODEV, "{}: holds a device of a volume of {} devices, expected {}",
                      directory, found.device_count, expected.device_count);
  }
  return {};
}

Outcome<Device> open_device(const std::string& directory, const DeviceRecord& expected,
                            DeviceRecord* record) {
  Device device{
      .directory = directory, .root = device_root(directory, expected.volume), .root_fd = {}};
  device.root_fd.reset(::open(device.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!device.root_fd && errno == ENOENT) {
    return missing_device(directory, expected.ordinal, expected.volume);
  }
  if (!device.root_fd) return os_error(errno, device.root, "cannot open");
  const std::string path = device.root + "/" + kDeviceJson;
  const Outcome<std::string> text = read_whole_file(device.root_fd.get(), kDeviceJson, path);
  if (!text) return text.error();
  const Outcome<DeviceRecord> found = parse_device_json(*text, path);
  if (!found) return found.error();
  if (Outcome<void> same = check_identity(*found, expected, directory); !same) return same.error();
  *record = *found;
  return device;
}

// Opens the directory `path`. Where a mount of the volume covers it, opens the directory beneath,
// with the stubs. (Only root may.) A clone of the mount that holds the parent directory has no
// mounts on it, so it shows that directory.
Outcome<Fd> open_root(const fs::path& path, bool is_covered) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  if (!is_covered) {
    Fd root(::open(path.c_str(), kFlags));
    if (!root) return os_error(errno, path.string(), "cannot open");
    return root;
  }
  const Fd above(
      ::open_tree(AT_FDCWD, path.parent_path().c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  Fd root(above ? ::openat(above.get(), path.filename().c_str(), kFlags) : -1);
  if (root && ::faccessat(root.get(), kVolumeJson, F_OK, 0) == 0) return root;
  return make_error(EBUSY,
                    "{}: is mounted over itself, which hides the stubs; unmount it first "
                    "(graphlane umount {})",
                    path.string(), path.string());
}

}  // namespace

// Retries if another process may be raising the epoch: then a device was read after the raise, and
// volume.json before it.
Outcome<std::shared_ptr<const Volume>> Volume::open(const std::string& root, OpenOptions how) {
  constexpr int kTriesMax = 4;
  constexpr std::chrono::milliseconds kPause{5};
  for (int i = 1;; ++i) {
    auto volume = open_once(root, how);
    if (volume || i == kTriesMax ||
        (volume.error().code != ESTALE && volume.error().code != ENODEV)) {
      return volume;
    }
    std::this_thread::sleep_for(kPause);
  }
}

Outcome<std::shared_ptr<const Volume>> Volume::open_once(const std::string& root, OpenOptions how) {
  std::error_code error;
  fs::path real = fs::canonical(root, error);
  if (error) return os_error(error.value(), root, "cannot open the volume");
  const std::optional<VolumeMount> mount = find_volume_mount(real.string());
  // At a mount elsewhere, the mounted volume is meant.
  if (mount) real = mount->volume_root;
  const bool is_covered = mount && find_volume_mount(real.string());
  Outcome<Fd> root_fd = open_root(real, is_covered);
  if (!root_fd) return root_fd.error();

  const std::string path = (real / kVolumeJson).string();
  if (::faccessat(root_fd->get(), kVolumeJson, F_OK, 0) != 0 && errno == ENOENT) {
    return make_error(ENOENT, "{}: not a Graphlane volume (no {})", root, kVolumeJson);
  }
  const Outcome<std::string> text = read_whole_file(root_fd->get(), kVolumeJson, path);
  if (!text) return text.error();
  Outcome<VolumeRecord> record = parse_volume_json(*text, path);
  if (!record) return record.error();

  std::shared_ptr<Volume> volume(new Volume);
  volume->root_ = real.string();
  volume->root_fd_ = std::move(*root_fd);
  volume->uuid_ = record->uuid;
  volume->format_ = record->format;
  volume->stripe_depth_bytes_ = record->stripe_depth_bytes;
  volume->is_depth_auto_ = record->is_depth_auto;
  volume->policy_ = record->policy;
  volume->verifies_reads_ = record->verifies_reads;
  if (record->verifies_reads) reads_are_verified = true;
  const auto count = static_cast<uint32_t>(record->devices.size());
  std::vector<std::optional<Outcome<Device>>> opened(count);
  std::vector<DeviceRecord> devices(count);
  parallel_for(count, [&](uint32_t i) {  // because idle disks take some seeks each
    opened[i] =
        open_device(record->devices[i],
                    {.volume = record->uuid, .ordinal = i, .device_count = count}, &devices[i]);
  });
  for (uint32_t i = 0; i < count; ++i) {
    Outcome<Device>& device = *opened[i];
    const bool is_left_out = !device && device.error().code == ENODEV && how.allows_missing_devices;
    if (!device && !is_left_out) return device.error();
    if (device) {
      volume->devices_.push_back(std::move(*device));
    } else {
      volume->devices_.push_back({.directory = record->devices[i],
                                  .root = device_root(record->devices[i], record->uuid),
                                  .root_fd = {}});
    }
    volume->device_roots_.push_back(volume->devices_.back().root_fd.get());
  }
  if (!how.allows_copies && !how.allows_missing_devices) {
    const Result<VolumeHome> seen = look_at_home(volume->root_fd());
    if (!seen) return os_error(seen.error().code, volume->root(), "cannot look at its .graphlane");
    if (Outcome<void> own = check_home(*record, devices, *seen, volume->root()); !own) {
      return own.error();
    }
  }
  return std::shared_ptr<const Volume>(std::move(volume));
}

std::string Volume::part_path(uint32_t device_index, const Uuid& file_id) const {
  return fmt::format("{}/{}", devices_[device_index].root, PartName(file_id).c_str());
}

Outcome<void> Volume::accept(const Layout& layout, std::string_view name) const {
  if (layout.volume != uuid_) {
    return make_error(EIO, "{}: stub of another volume ({})", name, UuidText(layout.volume).view());
  }
  if (layout.geometry.device_count != device_count()) {
    return make_error(EIO, "{}: striped over {} devices, but the volume has {}", name,
                      layout.geometry.device_count, device_count());
  }
  return {};
}

bool Volume::is_on_ssds() const {
  return std::all_of(devices_.begin(), devices_.end(), [](const Device& device) {
    struct stat st;
    return ::fstat(device.root_fd.get(), &st) == 0 && device_kind(st.st_dev) == DeviceKind::kSsd;
  });
}

std::vector<std::pair<uint32_t, uint32_t>> Volume::devices_on_one_disk() const {
  std::vector<std::pair<uint32_t, uint32_t>> shared;
  std::map<dev_t, uint32_t> first;
  for (uint32_t d = 0; d < device_count(); ++d) {
    struct stat st;
    if (::fstat(devices_[d].root_fd.get(), &st) != 0) continue;
    const auto [at, is_new] = first.try_emplace(disk_of(st.st_dev), d);
    if (!is_new) shared.emplace_back(at->second, d);
  }
  return shared;
}

Outcome<std::string> find_volume_root(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path real = fs::weakly_canonical(absolute, error);
  if (error) return os_error(error.value(), path, "cannot resolve");
  if (!real.has_filename()) real = real.parent_path();  // "/a/b/" that does not exist
  std::string strange;
  for (fs::path at = real;; at = at.parent_path()) {
    const FoundVolume found =
        find_volume_at(at.c_str(), (at / kControlDirectory).c_str(), (at / kVolumeJson).c_str());
    if (found == FoundVolume::kTrusted) return at.string();
    if (found == FoundVolume::kUntrusted && strange.empty()) {
      strange = (at / kControlDirectory).string();
    }
    if (at == at.parent_path()) break;
  }
  if (!strange.empty()) {
    return make_error(
        EPERM, "{}: {} belongs neither to its directory's owner nor to root, and is not believed",
        path, strange);
  }
  if (!fs::exists(fs::symlink_status(absolute, error))) {
    return make_error(ENOENT, "{}: no such file or directory, and not in a Graphlane volume", path);
  }
  if (real == absolute.lexically_normal()) {
    return make_error(ENOENT, "{}: not in a Graphlane volume", path);
  }
  return make_error(ENOENT, "{}: not in a Graphlane volume (it is {})", path, real.string());
}

}  // namespace graphlane
