#include "shim/devices.h"

#include <cerrno>
#include <cstring>

#include "iomgr/part_files.h"
#include "shim/text.h"

namespace graphlane {
namespace {

// "parts/3f": where a part lies below its device's root.
struct PartDirectory {
  explicit PartDirectory(const PartName& name) {
    std::memcpy(text, name.c_str(), sizeof text - 1);
  }
  const char* c_str() const { return text; }
  char text[sizeof "parts/3f"] = "";
};

int make_directory(int root, const char* path) {
  if (::syscall(SYS_mkdirat, root, path, 0755) != 0) return errno == EEXIST ? 0 : errno;
  (void)::syscall(SYS_fchmodat, root, path, 0755);  // whatever the umask
  return 0;
}

// Whoever removes a part removes an empty directory too, so it can go between our
// two calls.
int create_part(int root, const PartName& name) {
  const PartDirectory directory(name);
  for (;;) {
    if (const int error = make_directory(root, directory.c_str()); error != 0) return error;
    const Fd part(sys::openat(root, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (part) return 0;
    if (errno != ENOENT) return errno;
  }
}

}  // namespace

int error_for_program(int code) {
  switch (code) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EACCES: return code;
    default: return EIO;
  }
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
  const PartName name(file_id);
  for (const int root : devices.roots()) {
    if (const int error = create_part(root, name); error != 0) {
      remove_parts(devices, file_id);
      return error;
    }
  }
  return 0;
}

void remove_parts(const Devices& devices, const Uuid& file_id) {
  const PartName name(file_id);
  for (const int root : devices.roots()) {
    ::syscall(SYS_unlinkat, root, name.c_str(), 0);
    // Goes only when it is empty.
    ::syscall(SYS_unlinkat, root, PartDirectory(name).c_str(), AT_REMOVEDIR);
  }
}

}  // namespace graphlane
