#include "iomgr/volume_files.h"

#include <sys/file.h>

#include <cerrno>

namespace graphlane {

std::string device_root(const std::string& directory, const Uuid& uuid) {
  return fmt::format("{}/graphlane-{}", directory, UuidText(uuid).view());
}

Outcome<VolumeLock> VolumeLock::take(const Volume& volume, Mode mode) {
  const std::string path = volume.root() + "/" + kLockFile;
  Fd file(::openat(volume.root_fd(), kLockFile, O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return os_error(errno, path, "cannot open");
  if (::flock(file.get(), (mode == kExclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) {
    return VolumeLock(std::move(file));
  }
  if (errno != EWOULDBLOCK) return os_error(errno, path, "cannot lock");
  return make_error(EBUSY, "{}: busy: {}", volume.root(),
                    mode == kExclusive ? "an import or a removal is running"
                                       : "a repair is running");
}

}  // namespace graphlane
