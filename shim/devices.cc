#include "shim/devices.h"

#include <sys/xattr.h>

#include <cerrno>
#include <cstring>

#include "iomgr/part_files.h"
#include "shim/text.h"

namespace graphlane {

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
  errno = 0;  // what is wrong may have one
  const char* wrong = read_volume_file(path.view(), volume);
  if (wrong == nullptr && volume->volume != layout.volume) wrong = "stub of another volume";
  if (wrong == nullptr && volume->count != layout.geometry.device_count) {
    wrong = "stub for another number of devices";
  }
  if (wrong != nullptr) return {path.c_str(), wrong, error_for_program(errno)};
  return devices->open(*volume);
}

int create_parts(const Devices& devices, const Uuid& file_id) {
  for (const int root : devices.roots()) {
    if (const Result<Fd> part = create_part(root, file_id); !part) {
      remove_parts(devices, file_id);
      return part.error().code;
    }
  }
  return 0;
}

void remove_parts(const Devices& devices, const Uuid& file_id) {
  for (const int root : devices.roots()) (void)remove_part(root, file_id);
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
  }
  return error;
}

}  // namespace graphlane
