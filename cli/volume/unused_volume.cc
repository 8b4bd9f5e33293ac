#include "cli/volume/unused_volume.h"

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <thread>

#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/mount_table.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace {

// The coordinator of shared graphs ends two seconds after the last program that used it.
constexpr std::chrono::seconds kPatience{3};
constexpr std::chrono::milliseconds kPause{20};

}  // namespace

Outcome<Fd> check_unused(const Volume& volume) {
  for (const VolumeMount& mount : list_volume_mounts()) {
    if (mount.volume_root == volume.root()) {
      return make_error(EBUSY, "{}: is mounted at {} (graphlane umount {})", volume.root(),
                        mount.point, mount.point);
    }
  }
  Fd run(::openat(volume.root_fd(), kRunDirectory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!run) return os_error(errno, volume.root() + "/" + kRunDirectory, "cannot open");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (::flock(run.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return make_error(EBUSY,
                        "{0}: programs use it now (graphlane serve --stop {0} ends a server)",
                        volume.root());
    }
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on.error();
    std::this_thread::sleep_for(kPause);
  }
  return run;
}

}  // namespace graphlane::cli
