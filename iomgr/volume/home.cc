#include "iomgr/volume/home.h"

#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/json.h"
#include "iomgr/base/parallel_for.h"
#include "iomgr/volume/name_lock.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

constexpr auto kHomePatience = std::chrono::seconds(2);

Error is_a_copy(const VolumeRecord& volume, const std::string& root) {
  return make_error(
      ESTALE,
      "{0}: the devices of volume {1} belong to another directory; this one is a copy, or was "
      "moved from another filesystem. Nothing was changed. If the other one is gone: graphlane "
      "adopt {0}",
      root, UuidText(volume.uuid).view());
}

// Writes over the file, where a full filesystem has no room for another one: a removal that gives
// space back needs this. The text differs in a few digits, and lies in one sector of the disk.
Outcome<void> overwrite(int directory_fd, const char* name, const std::string& path,
                        const std::string& text) {
  const Fd file = open_regular(directory_fd, name, O_WRONLY);
  if (!file) return os_error(errno, path, "cannot open");
  const Result<void> written = pwrite_full(file.get(), text.data(), text.size(), 0);
  if (!written) return os_error(written.error().code, path, "cannot write");
  if (::ftruncate(file.get(), static_cast<off_t>(text.size())) != 0 || ::fsync(file.get()) != 0) {
    return os_error(errno, path, "cannot write");
  }
  return {};
}

// Writes this home into one of the JSON files; keeps the rest of the file.
Outcome<void> write_home(int directory_fd, const char* name, const std::string& path,
                         const VolumeHome& home) {
  const Outcome<std::string> text = read_whole_file(directory_fd, name, path);
  if (!text) return text.error();
  std::optional<Json> object = Json::parse(*text);
  if (!object || !object->is_object()) return make_error(EINVAL, "{}: not valid JSON", path);
  (*object)["format"] = 2;
  (*object)["home"] = {{"inode", home.directory.inode}, {"born", home.directory.born}};
  if (home.filesystem != 0) (*object)["home"]["filesystem"] = home.filesystem;
  (*object)["epoch"] = home.epoch;
  const std::string changed = object->dump(2) + "\n";
  Outcome<void> replaced = replace_file_atomically(directory_fd, name, path, changed);
  if (replaced || (replaced.error().code != ENOSPC && replaced.error().code != EDQUOT)) {
    return replaced;
  }
  return overwrite(directory_fd, name, path, changed);
}

Outcome<void> write_volume_home(const Volume& volume, const VolumeHome& home) {
  return write_home(volume.root_fd(), kVolumeJson, volume.root() + "/" + kVolumeJson, home);
}

// Runs on all devices at the same time; the first error.
Outcome<void> write_device_homes(const Volume& volume, const VolumeHome& home) {
  std::vector<Outcome<void>> written(volume.device_count());
  parallel_for(volume.device_count(), [&](uint32_t d) {
    const Device& device = volume.devices()[d];
    written[d] =
        write_home(device.root_fd.get(), kDeviceJson, device.root + "/" + kDeviceJson, home);
  });
  for (Outcome<void>& one : written) {
    if (!one) return std::move(one);
  }
  return {};
}

Outcome<VolumeRecord> read_volume_record(const Volume& volume) {
  const std::string path = volume.root() + "/" + kVolumeJson;
  const Outcome<std::string> text = read_whole_file(volume.root_fd(), kVolumeJson, path);
  return text ? parse_volume_json(*text, path) : text.error();
}

Outcome<std::vector<DeviceRecord>> read_device_records(const Volume& volume) {
  std::vector<DeviceRecord> records;
  for (const Device& device : volume.devices()) {
    const std::string path = device.root + "/" + kDeviceJson;
    const Outcome<std::string> text = read_whole_file(device.root_fd.get(), kDeviceJson, path);
    Outcome<DeviceRecord> record = text ? parse_device_json(*text, path) : text.error();
    if (!record) return record.error();
    records.push_back(*record);
  }
  return records;
}

// False for a user that does not own the volume. Such a user changes only its own files.
bool may_write_home(const Volume& volume) {
  if (::faccessat(volume.root_fd(), kControlDirectory.data(), W_OK, AT_EACCESS) != 0) return false;
  return std::all_of(volume.devices().begin(), volume.devices().end(), [](const Device& device) {
    return ::faccessat(device.root_fd.get(), ".", W_OK, AT_EACCESS) == 0;
  });
}

Outcome<void> raise_epoch(const Volume& volume) {
  const Outcome<HomeLock> lock = HomeLock::take(volume);
  if (!lock) return lock.error();
  const Outcome<VolumeRecord> record = read_volume_record(volume);
  if (!record) return record.error();
  const auto devices = read_device_records(volume);
  if (!devices) return devices.error();
  VolumeHome home = record->home;
  // Completes a raise that was killed: no device lags by more than one.
  const bool lags = std::any_of(devices->begin(), devices->end(),
                                [&](const DeviceRecord& d) { return d.home.epoch < home.epoch; });
  if (lags) {
    if (Outcome<void> mended = write_device_homes(volume, home); !mended) return mended;
  }
  home.epoch += 1;
  if (Outcome<void> raised = write_volume_home(volume, home); !raised) return raised;
  return write_device_homes(volume, home);
}

}  // namespace

Result<VolumeHome> look_at_home(int root_fd) {
  const Fd control(
      ::openat(root_fd, kControlDirectory.data(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!control) return last_errno();
  const Result<StubSeen> seen = identify_stub(control.get());
  if (!seen) return seen.error();
  VolumeHome home{.directory = seen->identity};
  struct statfs filesystem;
  if (::fstatfs(control.get(), &filesystem) == 0 && filesystem.f_type == BTRFS_SUPER_MAGIC) {
    static_assert(sizeof filesystem.f_fsid == sizeof home.filesystem);
    std::memcpy(&home.filesystem, &filesystem.f_fsid, sizeof home.filesystem);
  }
  return home;
}

bool is_same_home(const VolumeHome& named, const VolumeHome& seen) {
  return is_identity(named.directory, seen.directory) &&
         (named.filesystem == 0 || named.filesystem == seen.filesystem);
}

Outcome<void> check_home(const VolumeRecord& volume, const std::vector<DeviceRecord>& devices,
                         const VolumeHome& seen, const std::string& root) {
  if (volume.format == 1) return {};
  if (!is_same_home(volume.home, seen)) return is_a_copy(volume, root);
  for (size_t d = 0; d < devices.size(); ++d) {
    const VolumeHome& home = devices[d].home;
    if (devices[d].format == 1) {
      return make_error(ENODEV,
                        "{}: an older copy of device {}, from before the volume was made format 2",
                        volume.devices[d], d);
    }
    if (home.directory != volume.home.directory || home.filesystem != volume.home.filesystem) {
      return is_a_copy(volume, root);
    }
    if (home.epoch > volume.home.epoch) {
      return make_error(
          ESTALE,
          "{0}: an older copy of the directory of volume {1} (a snapshot, a clone?): its "
          "devices have been changed since by another one. Nothing was changed. If that one is "
          "gone: "
          "graphlane adopt {0}",
          root, UuidText(volume.uuid).view());
    }
    if (home.epoch + 1 < volume.home.epoch) {
      return make_error(
          ENODEV, "{}: an older copy of device {}: the volume has been changed since without it",
          volume.devices[d], d);
    }
  }
  return {};
}

// Writes the devices first: the change is complete once volume.json is written.
Outcome<void> take_home(const Volume& volume) {
  const Outcome<HomeLock> lock = HomeLock::take(volume);
  if (!lock) return lock.error();
  const Result<VolumeHome> seen = look_at_home(volume.root_fd());
  if (!seen) return os_error(seen.error().code, volume.root(), "cannot look at");
  const Outcome<VolumeRecord> record = read_volume_record(volume);
  if (!record) return record.error();
  const auto devices = read_device_records(volume);
  if (!devices) return devices.error();
  VolumeHome home = *seen;
  home.epoch = record->home.epoch;
  for (const DeviceRecord& device : *devices) home.epoch = std::max(home.epoch, device.home.epoch);
  home.epoch += 1;
  if (Outcome<void> written = write_device_homes(volume, home); !written) return written;
  return write_volume_home(volume, home);
}

Outcome<void> Volume::note_change() const {
  const MutexLock held(changed_mu_);
  if (is_changed_) return {};
  if (format_ > 1 && may_write_home(*this)) {
    if (Outcome<void> raised = raise_epoch(*this); !raised) return raised;
  }
  is_changed_ = true;
  return {};
}

// Takes it by flock(2), which does not conflict with the locks of volume_files.h.
Outcome<HomeLock> HomeLock::take(const Volume& volume) {
  constexpr auto kPause = std::chrono::milliseconds(5);
  const std::string path = volume.root() + "/" + kLockFile;
  Fd file(::openat(volume.root_fd(), kLockFile,
                   O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!file) return os_error(errno, path, "cannot open");
  const auto deadline = std::chrono::steady_clock::now() + kHomePatience;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return os_error(errno, path, "cannot lock");
    if (std::chrono::steady_clock::now() >= deadline) {
      return make_error(EBUSY, "{}: busy: another program is writing what the volume is",
                        volume.root());
    }
    std::this_thread::sleep_for(kPause);
  }
  return HomeLock(std::move(file));
}

}  // namespace graphlane
