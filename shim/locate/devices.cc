#include "shim/locate/devices.h"

#include <sys/xattr.h>

#include <cerrno>
#include <cstring>

#include "iomgr/base/files/file_kind.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "shim/base/text.h"

namespace graphlane::shim {

int error_for_program(int code) {
  switch (code) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EACCES: return code;
    default: return EIO;
  }
}

Fd open_volume(const VolumeDevices& volume) {
  return Fd(sys::openat(AT_FDCWD, volume.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Failure Devices::open(const VolumeDevices& volume) {
  for (uint32_t d = 0; d < volume.count; ++d) {
    const char* path = volume.roots[d].c_str();
    roots_[d] = Fd(sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!roots_[d]) return {path, strerrordesc_np(errno), error_for_program(errno)};
    const char* wrong = check_device_file(roots_[d].get(), volume, d);
    if (wrong != nullptr) return {path, wrong, error_for_program(errno)};
    fds_[d] = roots_[d].get();
    count_ = d + 1;
  }
  return {};
}

Failure open_devices_of(int fd, const Layout& layout, VolumeDevices* volume, Devices* devices) {
  static PathText path;  // under the SlowLock
  find_path(fd, &path);
  errno = 0;  // may be set by the failure
  const char* wrong = read_volume_file(path.view(), volume);
  if (wrong == nullptr && volume->volume != layout.volume) wrong = "stub of another volume";
  if (wrong == nullptr && volume->count != layout.geometry.device_count) {
    wrong = "stub for another number of devices";
  }
  if (wrong != nullptr) return {path.c_str(), wrong, error_for_program(errno)};
  Failure failure = devices->open(*volume);
  // Another process may just have raised the epoch, so that the devices are newer than volume.json
  // was when it was read.
  if (failure && (wrong = read_volume_file(path.view(), volume)) == nullptr) {
    *devices = {};
    failure = devices->open(*volume);
  }
  return failure;
}

int create_parts(const Devices& devices, const Layout& layout) {
  for (uint32_t d = 0; d < devices.roots().size(); ++d) {
    const int root = devices.roots()[d];
    const Result<Fd> part = create_part(root, layout.file_id);
    int error = part ? 0 : part.error().code;
    if (part) {
      error = write_part_record(part->get(), part_of(root, layout),
                                part_record_of(layout, d, PartRecord::kMaking));
    }
    if (error != 0) {
      remove_parts(devices, layout);
      return error;
    }
  }
  return 0;
}

int bind_parts(const Devices& devices, const Layout& layout, int stub_fd) {
  for (uint32_t d = 0; d < devices.roots().size(); ++d) {
    const int root = devices.roots()[d];
    const Fd part = open_part(root, layout.file_id);
    if (!part) return errno;
    const PartRecord record = part_record_of(layout, d, PartRecord::kNew);
    if (const int error = write_part_record(part.get(), part_of(root, layout), record);
        error != 0) {
      return error;
    }
  }
  return share_access(stub_fd, devices, layout.file_id);
}

const char* verify_parts(const Devices& devices, const VolumeDevices& volume, const Layout& layout,
                         int stub_fd) {
  const Result<StubSeen> seen = identify_stub(stub_fd);
  if (!seen) return strerrordesc_np(seen.error().code);
  const PartsOwner owner{.stub = *seen, .volume_format = volume.format};
  const Result<void, PartError> owned = verify_named_parts(devices.roots(), layout, owner);
  // The existing parts of a never-synced file are its own.
  if (owned || owned.error().ownership == Ownership::kNeverSynced) return nullptr;
  return describe_part_error(owned.error(), devices.roots()[owned.error().device_index],
                             PartName(layout.file_id).c_str());
}

const char* describe_part_error(const PartError& error, int root_fd, const char* part) {
  if (error.ownership != Ownership::kOwned) return describe(error.ownership);
  return error.size_found < error.size_expected ? "the part is shorter than it should be"
                                                : opening_error_text(error.code, root_fd, part);
}

void remove_parts(const Devices& devices, const Layout& layout) {
  for (const int root : devices.roots()) mark_removed(part_of(root, layout));
  for (const int root : devices.roots()) (void)remove_part(root, layout.file_id);
}

int share_access(int stub_fd, const Devices& devices, const Uuid& file_id) {
  struct stat st;
  if (sys::fstat(stub_fd, &st) != 0) return errno;
  const bool listed = ::fgetxattr(stub_fd, "system.posix_acl_access", nullptr, 0) >= 0;
  const mode_t mode = st.st_mode & (listed ? 0707 : 0777);
  const PartName name(file_id);
  int error = 0;
  for (const int root : devices.roots()) {
    if (const int failed = give_access(root, name.c_str(), st, mode); failed != 0) error = failed;
    const Fd part = find_part(root, file_id);
    const PartOf which{.root_fd = root, .volume = {}, .file_id = file_id};
    if (part && share_part_access(part.get(), which) != 0) error = EIO;
  }
  return error;
}

}  // namespace graphlane::shim
