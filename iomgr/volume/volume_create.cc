// Volume::create: checks first, then makes the root, then the devices. volume.json comes last, so
// that a directory is a volume only when it is complete. Until then `.graphlane/making` names what is
// made, so that the next create removes what a killed one has left.
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <optional>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/device_kind.h"
#include "iomgr/volume/home.h"
#include "iomgr/volume/name_lock.h"
#include "iomgr/volume/volume.h"
#include "iomgr/volume/volume_files.h"
#include "iomgr/volume/volume_json.h"

namespace graphlane {
namespace fs = std::filesystem;

// With ".." in it only the resolved name is safe from a moved link.
Outcome<std::string> check_device_directory(const std::string& directory, const fs::path& root) {
  std::error_code error;
  const fs::path real = fs::canonical(directory, error);
  if (error) return os_error(error.value(), directory, "cannot open the device");
  if (!fs::is_directory(real, error)) {
    return make_error(ENOTDIR,
                      "{}: not a directory (a device is a directory on it, so make a "
                      "filesystem and mount it)",
                      directory);
  }
  if (is_within(real, root)) {
    return make_error(EINVAL, "{}: device lies inside the volume {}", directory, root.string());
  }
  if (is_within(root, real)) {
    return make_error(EINVAL, "{}: device contains the volume {}", directory, root.string());
  }
  if (const Outcome<std::string> outer = find_volume_root(real.string())) {
    return make_error(EINVAL, "{}: device lies inside the volume {}", directory, *outer);
  }
  const fs::path given(directory);
  if (std::find(given.begin(), given.end(), "..") != given.end()) return real.string();
  fs::path absolute = fs::absolute(given, error).lexically_normal();
  if (!absolute.has_filename() && absolute.has_relative_path()) absolute = absolute.parent_path();
  return absolute.string();
}

Outcome<void> check_devices_apart(const std::vector<std::string>& devices,
                                  const std::string& last) {
  std::error_code error;
  const fs::path real = fs::canonical(last, error);
  for (const std::string& device : devices) {
    const fs::path other = fs::canonical(device, error);
    const bool is_inside = is_within(real, other);
    if (!is_inside && !is_within(other, real)) continue;
    return make_error(EINVAL, "{}: device lies inside the device {}", is_inside ? last : device,
                      is_inside ? device : last);
  }
  return {};
}

namespace {

// The files made so far. The destructor removes them, last first, unless keep() was called.
class Scaffold {
 public:
  Scaffold() = default;
  Scaffold(const Scaffold&) = delete;
  ~Scaffold() {
    for (auto path = made_.rbegin(); path != made_.rend(); ++path) ::remove(path->c_str());
  }
  void keep() { made_.clear(); }

  // An error names the directory above, if the user knows only that one (a device's).
  Outcome<void> make_directory(const std::string& path, mode_t mode) {
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
    const fs::path directory(path);
    if (::mkdir(path.c_str(), mode) != 0) {
      if (directory.filename().string().starts_with("graphlane-")) {
        return os_error(errno, directory.parent_path().string(), "cannot make a directory in it");
      }
      return os_error(errno, path, "cannot create");
    }
    made_.push_back(path);
    return {};
  }

  // Makes a directory that other users must pass through, independent of the umask.
  Outcome<void> make_open_directory(const std::string& path, mode_t mode) {
    if (Outcome<void> made = make_directory(path, mode); !made) return made;
    if (::chmod(path.c_str(), mode) != 0) return os_error(errno, path, "cannot set the mode");
    return {};
  }

  Outcome<void> make_file(const std::string& path, std::string_view content) {
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
    if (Outcome<void> made = write_file_atomically(AT_FDCWD, path, path, content, 0644); !made) {
      return made;
    }
    made_.push_back(path);
    return {};
  }

 private:
  std::vector<std::string> made_;
};

// In VOL/.graphlane: the uuid and the devices of an unfinished volume, a line each.
constexpr char kMakingFile[] = ".graphlane/making";

bool is_mine(const fs::path& path) {
  struct stat st;
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == ::geteuid();
}

// Removes the files in a directory, and then the directory. Fails if it has more than that.
bool remove_with_files(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.is_regular_file(error) && !entry.is_symlink(error)) files.push_back(entry.path());
  }
  for (const fs::path& file : files) ::unlink(file.c_str());
  return ::rmdir(directory.c_str()) == 0;
}

// A device's directory that has parts, or is another user's, stays.
void remove_unfinished_device(const fs::path& device_root) {
  if (!is_mine(device_root)) return;
  for (const char* const folder : {"sums", "parts"}) {
    if (::rmdir((device_root / folder).c_str()) != 0 && errno != ENOENT) return;
  }
  (void)remove_with_files(device_root);
}

// Whether there is at most a `making` that was never complete.
bool has_only_temporaries(const fs::path& control) {
  std::error_code error;
  return std::all_of(fs::directory_iterator(control, error), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) {
                       return entry.path().filename().string().starts_with("making.");
                     });
}

// Removes what a killed create of this user has left: VOL/.graphlane alone, without volume.json.
Outcome<void> remove_unfinished(const fs::path& root) {
  std::error_code error;
  const fs::path control = root / kControlDirectory;
  if (!is_mine(control) || fs::exists(root / kVolumeJson, error) ||
      std::distance(fs::directory_iterator(root, error), fs::directory_iterator()) != 1) {
    return {};
  }
  const Fd held(::open(control.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!held || ::flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
    return make_error(EBUSY, "{}: another process is making a volume there", root.string());
  }
  const std::string making = (root / kMakingFile).string();
  if (const Outcome<std::string> text = read_whole_file(AT_FDCWD, making.c_str(), making)) {
    const size_t end = std::min(text->find('\n'), text->size());
    const std::optional<Uuid> uuid = Uuid::parse(std::string_view(*text).substr(0, end));
    for (size_t at = end + 1; uuid && at < text->size();) {
      const size_t next = std::min(text->find('\n', at), text->size());
      remove_unfinished_device(device_root(text->substr(at, next - at), *uuid));
      at = next + 1;
    }
  } else if (text.error().code != ENOENT || !has_only_temporaries(control)) {
    return {};  // of a volume that has lost its volume.json
  }
  (void)::rmdir((root / kStagingDirectory).c_str());
  (void)remove_with_files(control / "run");
  (void)remove_with_files(control);
  return {};
}

// The preload library reads volume.json into memory of a fixed size.
constexpr size_t kGlobCountMax = 256;

Outcome<void> check_policy(const StripePolicy& policy) {
  if (policy.globs.size() > kGlobCountMax) {
    return make_error(EINVAL, "{} globs: at most {}", policy.globs.size(), kGlobCountMax);
  }
  for (const std::string& glob : policy.globs) {
    if (glob.empty() || glob.size() > NAME_MAX || glob.find('/') != std::string::npos) {
      return make_error(EINVAL, "'{}': a glob is matched against file names, without '/'", glob);
    }
  }
  return {};
}

// The root with its parent resolved. It must be new, or an empty directory.
Outcome<fs::path> check_root(const std::string& root) {
  std::error_code error;
  fs::path path = fs::absolute(root, error).lexically_normal();
  if (root.empty() || error) return make_error(EINVAL, "'{}': not a path for a volume", root);
  if (!path.has_filename()) path = path.parent_path();
  const fs::path parent = fs::canonical(path.parent_path(), error);
  if (error) return os_error(error.value(), path.parent_path().string(), "cannot open");
  if (const Outcome<std::string> outer = find_volume_root(parent.string())) {
    return make_error(EINVAL, "{}: lies inside the volume {}", root, *outer);
  }
  if (!fs::exists(fs::symlink_status(path, error))) return parent / path.filename();
  if (!fs::is_directory(path, error)) return make_error(ENOTDIR, "{}: not a directory", root);
  if (fs::exists(path / kVolumeJson, error)) {
    return make_error(EEXIST, "{}: is a Graphlane volume already", root);
  }
  return fs::canonical(path, error);
}

Outcome<std::vector<std::string>> check_devices(const std::vector<std::string>& given,
                                                const fs::path& root) {
  if (given.size() < kDeviceCountMin) {
    return make_error(EINVAL, "{}: a volume needs at least two devices, not {}", root.string(),
                      given.size());
  }
  if (given.size() > kDeviceCountMax) {
    return make_error(EINVAL, "{}: a volume takes at most {} devices, not {}", root.string(),
                      kDeviceCountMax, given.size());
  }
  std::vector<std::string> devices;
  std::vector<std::pair<dev_t, ino_t>> seen;
  for (const std::string& directory : given) {
    Outcome<std::string> device = check_device_directory(directory, root);
    if (!device) return device.error();
    struct stat info;
    if (::stat(device->c_str(), &info) != 0) return os_error(errno, directory, "cannot open");
    const std::pair identity(info.st_dev, info.st_ino);
    if (const auto twin = std::find(seen.begin(), seen.end(), identity); twin != seen.end()) {
      return make_error(EINVAL, "{}: the same directory as device {}", directory,
                        twin - seen.begin());
    }
    seen.push_back(identity);
    if (Outcome<void> apart = check_devices_apart(devices, *device); !apart) return apart.error();
    devices.push_back(std::move(*device));
  }
  return devices;
}

Outcome<void> make_device(const std::string& directory, const DeviceRecord& record,
                          Scaffold* scaffold) {
  const std::string root = device_root(directory, record.volume);
  if (Outcome<void> made = scaffold->make_open_directory(root, 0755); !made) return made;
  // Other users need not know the file names.
  for (const char* const folder : {"/parts", "/sums"}) {
    if (Outcome<void> made = scaffold->make_open_directory(root + folder, 0711); !made) return made;
  }
  if (Outcome<void> made = scaffold->make_file(root + "/" + kDeviceJson, to_json(record)); !made) {
    return made;
  }
  return sync_directory(directory);
}

bool are_ssds(const std::vector<std::string>& directories) {
  return std::all_of(directories.begin(), directories.end(), [](const std::string& directory) {
    struct stat st;
    return ::stat(directory.c_str(), &st) == 0 && device_kind(st.st_dev) == DeviceKind::kSsd;
  });
}

// Makes all but volume.json. `held`: the control directory, locked while the volume is made.
Outcome<void> make_root(const fs::path& root, const VolumeRecord& record, Scaffold* scaffold,
                        Fd* held) {
  std::error_code error;
  if (!fs::exists(root, error)) {
    if (Outcome<void> made = scaffold->make_directory(root.string(), 0777); !made) return made;
  } else if (!fs::is_empty(root, error)) {
    return make_error(ENOTEMPTY, "{}: directory is not empty", root.string());
  }
  const std::string control = (root / kControlDirectory).string();
  if (Outcome<void> made = scaffold->make_open_directory(control, 0755); !made) return made;
  *held = Fd(::open(control.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)::flock(held->get(), LOCK_EX | LOCK_NB);
  std::string making = std::string(UuidText(record.uuid).view()) + "\n";
  for (const std::string& device : record.devices) making += device + "\n";
  if (Outcome<void> made = scaffold->make_file((root / kMakingFile).string(), making); !made) {
    return made;
  }
  if (Outcome<void> made = scaffold->make_open_directory(control + "/run", 0755); !made)
    return made;
  // Other users need no access to incomplete files.
  if (Outcome<void> made = scaffold->make_directory((root / kStagingDirectory).string(), 0700);
      !made) {
    return made;
  }
  return scaffold->make_file((root / kLockFile).string(), "");
}

Outcome<VolumeHome> home_of(const fs::path& root) {
  const Fd directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Result<VolumeHome> home =
      directory ? look_at_home(directory.get()) : Result<VolumeHome>(last_errno());
  if (!home) return os_error(home.error().code, root.string(), "cannot look at");
  return *home;
}

Outcome<void> make_volume_json(const fs::path& root, const std::string& volume_json,
                               Scaffold* scaffold) {
  if (Outcome<void> made = scaffold->make_file((root / kVolumeJson).string(), volume_json); !made) {
    return made;
  }
  if (Outcome<void> synced = sync_directory(root.string()); !synced) return synced;
  return sync_directory(root.parent_path().string());
}

}  // namespace

Outcome<std::shared_ptr<const Volume>> Volume::create(const VolumeOptions& options) {
  if (options.stripe_depth_bytes) {
    if (Outcome<void> checked = check_stripe_depth(*options.stripe_depth_bytes); !checked) {
      return checked.error();
    }
  }
  if (Outcome<void> checked = check_policy(options.policy); !checked) return checked.error();
  const Outcome<fs::path> root = check_root(options.root);
  if (!root) return root.error();
  Outcome<std::vector<std::string>> devices = check_devices(options.devices, *root);
  if (!devices) return devices.error();
  if (Outcome<void> removed = remove_unfinished(*root); !removed) return removed.error();
  std::error_code error;
  if (fs::exists(*root, error) && !fs::is_empty(*root, error)) {
    return make_error(ENOTEMPTY, "{}: directory is not empty", options.root);
  }

  const uint64_t depth_default = stripe_depth_default(are_ssds(*devices));
  VolumeRecord record{.uuid = Uuid::random(),
                      .devices = std::move(*devices),
                      .stripe_depth_bytes = options.stripe_depth_bytes.value_or(depth_default),
                      .is_depth_auto = options.is_depth_auto,
                      .verifies_reads = options.verifies_reads,
                      .policy = options.policy};
  if (const Outcome<std::string> possible = to_json(record); !possible) return possible.error();

  Scaffold scaffold;
  Fd held;
  if (Outcome<void> made = make_root(*root, record, &scaffold, &held); !made) return made.error();
  const Outcome<VolumeHome> home = home_of(*root);
  if (!home) return home.error();
  record.home = *home;
  const auto count = static_cast<uint32_t>(record.devices.size());
  for (uint32_t i = 0; i < count; ++i) {
    const DeviceRecord device{
        .home = *home, .volume = record.uuid, .ordinal = i, .device_count = count};
    if (Outcome<void> made = make_device(record.devices[i], device, &scaffold); !made) {
      return made.error();
    }
  }
  const Outcome<std::string> volume_json = to_json(record);
  if (!volume_json) return volume_json.error();
  if (Outcome<void> made = make_volume_json(*root, *volume_json, &scaffold); !made) {
    return made.error();
  }
  Outcome<std::shared_ptr<const Volume>> volume = open(root->string());
  if (volume) {
    scaffold.keep();
    (void)::unlink((*root / kMakingFile).c_str());
  }
  return volume;
}

}  // namespace graphlane
