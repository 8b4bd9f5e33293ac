#include "fuse/mount/mount.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "fuse/mount/mountpoint.h"
#include "fuse/mount/session.h"
#include "fuse/mount/stop_signals.h"
#include "fuse/ops/filesystem.h"
#include "fuse/ops/page_cache_limits.h"
#include "iomgr/base/process/daemonize.h"
#include "iomgr/base/process/log.h"
#include "iomgr/volume/mount_table.h"
#include "iomgr/volume/sum/tell.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::fuse {
namespace {

Outcome<void> check_device_file() {
  if (::access("/dev/fuse", R_OK | W_OK) == 0) return {};
  const char* advice = errno == ENOENT   ? " (modprobe fuse; in a container: --device /dev/fuse)"
                       : errno == EACCES ? " (graphlane run --no-mount reads without a mount)"
                                         : "";
  return make_error(errno, "/dev/fuse: {}{}", std::strerror(errno), advice);
}

// A mount below VOL would be reached by its own daemon, which would then wait for itself. One
// inside a device would cover parts or be covered.
Outcome<void> check_place(const Volume& volume, const std::string& mountpoint) {
  if (mountpoint != volume.root() && is_within(mountpoint, volume.root())) {
    return make_error(EINVAL, "{}: lies inside the volume {}; mount over the volume or outside it",
                      mountpoint, volume.root());
  }
  for (const Device& device : volume.devices()) {
    if (is_within(mountpoint, device.directory)) {
      return make_error(EINVAL, "{}: lies inside the volume's device {}", mountpoint,
                        device.directory);
    }
  }
  return {};
}

Outcome<std::string> check_mountpoint(const Volume& volume, const MountOptions& options) {
  const std::string& asked = options.mountpoint.empty() ? volume.root() : options.mountpoint;
  Outcome<std::string> path = absolute_mountpoint(asked);
  if (!path) return path.error();
  if (find_volume_mount(*path)) {
    struct statfs fs;  // the kernel asks for it each time; it caches what stat() says
    const bool dead = ::statfs(path->c_str(), &fs) != 0 && errno == ENOTCONN;
    if (dead) {
      return make_error(EBUSY, "{0}: a mount whose daemon has died; first: graphlane umount {0}",
                        *path);
    }
    return make_error(EBUSY, "{}: a Graphlane volume is mounted there already", *path);
  }
  struct stat st;
  if (::stat(path->c_str(), &st) != 0) return os_error(errno, asked, "cannot mount there");
  if (!S_ISDIR(st.st_mode)) return make_error(ENOTDIR, "{}: not a directory", asked);
  if (Outcome<void> place = check_place(volume, *path); !place) return place.error();
  return path;
}

// Asks the mount for its root from a thread of its own, as a user would, until it answers. `below`
// is the device of the directory that it covers.
class ReadinessProbe {
 public:
  ReadinessProbe(std::shared_ptr<const Volume> volume, std::string mountpoint, dev_t below,
                 std::function<void()> on_ready)
      : thread_([volume = std::move(volume), mountpoint = std::move(mountpoint), below,
                 on_ready = std::move(on_ready)] {
          struct stat st;
          // Otherwise the mount ended before it was ready.
          if (::stat(mountpoint.c_str(), &st) != 0 || st.st_dev == below) return;
          raise_page_cache_limits(st.st_dev, *volume);
          on_ready();
        }) {}
  ~ReadinessProbe() { thread_.join(); }

 private:
  std::thread thread_;
};

Outcome<void> serve_mount(const std::shared_ptr<const Volume>& volume, const MountOptions& asked,
                          const std::string& mountpoint, std::function<void()> on_ready) {
  StopSignals stop;
  prepare_server_process();
  MountOptions options = asked;
  options.read_only |= volume->format() == 1;
  reads_are_verified = options.verifies_reads.value_or(volume->verifies_reads());
  log_sum_failures();
  Outcome<std::unique_ptr<Filesystem>> fs = Filesystem::start(volume, options);
  if (!fs) return fs.error();
  // It ends after the session, because it waits for an answer until the mount is gone.
  std::optional<ReadinessProbe> probe;
  Outcome<std::unique_ptr<Session>> session = Session::make(**fs);
  if (!session) return session.error();
  struct stat covered;
  if (::stat(mountpoint.c_str(), &covered) != 0) {
    return os_error(errno, mountpoint, "cannot mount there");
  }
  if (Outcome<void> mounted = (*session)->mount(mountpoint); !mounted) return mounted;
  probe.emplace(volume, mountpoint, covered.st_dev, std::move(on_ready));
  return (*session)->serve(&stop);
}

}  // namespace

Outcome<void> mount_volume(std::shared_ptr<const Volume> volume, const MountOptions& options) {
  if (Outcome<void> available = check_device_file(); !available) return available;
  const Outcome<std::string> mountpoint = check_mountpoint(*volume, options);
  if (!mountpoint) return mountpoint.error();
  if (options.foreground) return serve_mount(volume, options, *mountpoint, [] {});
  return daemonize([&](std::function<void()> on_ready) {
    return serve_mount(volume, options, *mountpoint, std::move(on_ready));
  });
}

}  // namespace graphlane::fuse
