#include "cli/volume/unused_volume.h"

#include <fcntl.h>
#include <sys/file.h>

#include "iomgr/volume/mount_table.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {

Outcome<Fd> check_unused(const Volume& volume) {
  for (const VolumeMount& mount : list_volume_mounts()) {
    if (mount.volume_root == volume.root()) {
      return make_error(EBUSY, "{}: is mounted at {} (graphlane umount {})", volume.root(),
                        mount.point, mount.point);
    }
  }
  Fd run(::openat(volume.root_fd(), kRunDirectory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!run) return os_error(errno, volume.root() + "/" + kRunDirectory, "cannot open");
  if (::flock(run.get(), LOCK_EX | LOCK_NB) != 0) {
    return make_error(EBUSY, "{0}: programs use it now (graphlane serve --stop {0} ends a server)",
                      volume.root());
  }
  return run;
}

}  // namespace graphlane::cli
