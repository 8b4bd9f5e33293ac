#include "shim/locate/volume_json.h"

#include <fnmatch.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/volume/found_volume.h"
#include "iomgr/volume/kind.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/volume_fields.h"

namespace graphlane::shim {
namespace {

// The text of one file at a time, and its JSON object. All under the SlowLock. 512 KiB hold 64 devices
// with the longest of paths.
char volume_text[512 * 1024];
char device_text[64 * 1024];
constinit JsonView volume_object, device_object;
constinit JsonView stripe_globs;  // in volume_text
uint64_t stripe_size_min_bytes = 0;

// False: unreadable, too long, or not one JSON object.
bool read_object(int directory, const char* path, std::span<char> text, JsonView* object) {
  *object = {};
  const Fd fd = open_regular(directory, path, O_RDONLY);
  if (!fd) return false;
  const Result<size_t> got = read_full(fd.get(), text.data(), text.size());
  if (!got || *got == text.size()) return false;
  *object = JsonView::parse({text.data(), *got}).value_or(JsonView());
  return object->is_object();
}

bool read_device(int root_fd) {
  return read_object(root_fd, "device.json", device_text, &device_object);
}

// Whether the process lacks resources for now: then the error says nothing about the file.
bool is_lack(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// Opens the volume.json of the nearest trusted directory above, and sets `path` to it. Null, or the
// reason why there is none. A lack of descriptors or memory (errno) ends the search, because a
// volume further up would be another one.
const char* read_nearest(std::string_view file, PathText& path) {
  static PathText directory, control;  // under the SlowLock
  const char* wrong = "no readable .graphlane/volume.json above the stub";
  path.cut(0);
  path << file;
  while (true) {
    const size_t slash = path.view().rfind('/');
    if (slash == std::string_view::npos) return wrong;
    path.cut(slash);
    directory.cut(0);
    directory << path.view() << "/";
    control.cut(0);
    control << path.view() << "/.graphlane";
    path << "/.graphlane/volume.json";
    const FoundVolume found = find_volume_at(directory.c_str(), control.c_str(), path.c_str());
    errno = 0;
    const bool has_read = found == FoundVolume::kTrusted &&
                          read_object(AT_FDCWD, path.c_str(), volume_text, &volume_object);
    path.cut(slash);
    if (has_read) return nullptr;
    if (is_lack(errno)) return strerrordesc_np(errno);
    if (found == FoundVolume::kUntrusted) {
      wrong = "the .graphlane above the stub is neither its directory's owner's nor root's";
    }
  }
}

// Whether the .graphlane below the directory is the one that volume.json names. On btrfs it also
// compares the filesystem's id, because snapshots keep the rest. False, with errno if it cannot be
// opened.
bool is_at_home(const PathText& directory, const VolumeDevices& devices) {
  static PathText path;  // under the SlowLock
  path.cut(0);
  path << directory.view() << "/.graphlane";
  errno = 0;
  const Fd control(
      sys::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const Result<StubSeen> seen =
      control ? identify_stub(control.get()) : Result<StubSeen>(last_errno());
  if (!seen || !is_identity(devices.home.directory, seen->identity)) return false;
  if (devices.home.filesystem == 0) return true;
  struct statfs now;
  uint64_t number = 0;
  if (::fstatfs(control.get(), &now) != 0) return false;
  std::memcpy(&number, &now.f_fsid, sizeof number);
  return number == devices.home.filesystem;
}

}  // namespace

const char* read_volume_file(std::string_view file, VolumeDevices* devices) {
  stripe_globs = {};
  stripe_size_min_bytes = 0;
  if (const char* wrong = read_nearest(file, devices->directory)) return wrong;
  const Result<VolumeFields, FieldError> fields = parse_volume_fields(volume_object);
  if (!fields) return "the volume's volume.json is damaged or of another format";
  devices->format = fields->format;
  devices->home = fields->home;
  if (fields->format > 1 && !is_at_home(devices->directory, *devices)) {
    if (is_lack(errno)) return strerrordesc_np(errno);
    return "this directory is a copy of the volume, or was moved: see graphlane adopt";
  }
  devices->volume = fields->uuid;
  devices->stripe_depth_bytes = fields->stripe_depth_bytes;
  devices->verifies_reads = fields->verifies_reads;
  devices->count = 0;
  for (const JsonView device : fields->devices.elements()) {
    PathText& root = devices->roots[devices->count++];
    root.cut(0);
    (void)device.append_to(root);
    if (!root.view().starts_with('/'))
      return "a device's path in volume.json does not begin with /";
    root << "/graphlane-" << UuidText(fields->uuid).view();
    if (!root.ok()) return "a device's path in volume.json is too long";
  }
  stripe_globs = fields->globs;
  stripe_size_min_bytes = fields->size_min_bytes;
  return nullptr;
}

bool wants_new(const char* name) {
  static PathText glob, at_the_end;  // under the SlowLock
  at_the_end.cut(0);
  at_the_end << final_name(name);
  for (const JsonView each : stripe_globs.elements()) {
    glob.cut(0);
    (void)each.append_to(glob);
    if (::fnmatch(glob.c_str(), name, 0) == 0) return true;
    if (::fnmatch(glob.c_str(), at_the_end.c_str(), 0) == 0) return true;
  }
  return false;
}

uint64_t size_min_bytes() { return stripe_size_min_bytes; }

const char* check_device_file(int root_fd, const VolumeDevices& devices, uint32_t index) {
  errno = 0;
  if (!read_device(root_fd)) {
    return is_lack(errno) ? strerrordesc_np(errno) : "device.json is missing or damaged";
  }
  const Result<DeviceRecord, FieldError> device = parse_device_fields(device_object);
  if (!device) return "device.json is damaged";
  if (device->volume != devices.volume) return "belongs to another volume";
  if (devices.format > 1 && device->format != devices.format)
    return "is an older copy of the device";
  if (devices.format > 1 && device->home.directory != devices.home.directory) {
    return "belongs to another directory of this volume: see graphlane adopt";
  }
  if (devices.format > 1 && device->home.epoch > devices.home.epoch) {
    return "was changed since by another directory of this volume: see graphlane adopt";
  }
  if (device->home.epoch + 1 < devices.home.epoch) return "is an older copy of the device";
  if (device->device_count != devices.count) return "counts other devices than the volume";
  if (device->ordinal != index) return "is another device of the volume (swapped?)";
  return nullptr;
}

uint32_t calibrated_depth(const char* root) {
  const Fd fd(sys::openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd || !read_device(fd.get())) return 0;
  const auto depth = device_object.at("calibration").at("depth").as_unsigned();
  return depth && *depth <= kQueueDepthMax ? static_cast<uint32_t>(*depth) : 0;
}

}  // namespace graphlane::shim
