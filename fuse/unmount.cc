#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "fuse/mount.h"
#include "fuse/mountpoint.h"
#include "fuse/stderr_catcher.h"
#include "iomgr/mount_table.h"

namespace graphlane {
namespace {

Error busy(const std::string& mountpoint) {
  return make_error(EBUSY, "{}: in use (a program has a file open there or works there)",
                    mountpoint);
}

// fusermount3 is set-user-ID root; its exit status says only whether.
Outcome<void> unmount_as_user(const std::string& mountpoint) {
  StderrCatcher said;
  std::string program = "fusermount3", unmount = "-u", end = "--", path = mountpoint;
  char* const argv[] = {program.data(), unmount.data(), end.data(), path.data(), nullptr};
  pid_t child;
  const int error = ::posix_spawnp(&child, "fusermount3", nullptr, nullptr, argv, environ);
  if (error != 0) return os_error(error, "fusermount3", "cannot run");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  const std::string reason = said.first_line();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (reason.find("busy") != std::string::npos) return busy(mountpoint);
  return make_error(EPERM, "{}: cannot unmount: {}", mountpoint, reason);
}

}  // namespace

Outcome<void> unmount(const std::string& mountpoint) {
  const Outcome<std::string> path = absolute_mountpoint(mountpoint);
  if (!path) return path.error();
  if (!find_volume_mount(*path)) {
    return make_error(EINVAL, "{}: no Graphlane volume is mounted there", mountpoint);
  }
  if (::umount2(path->c_str(), UMOUNT_NOFOLLOW) == 0) return {};
  if (errno == EPERM) return unmount_as_user(*path);
  if (errno == EBUSY) return busy(*path);
  return os_error(errno, *path, "cannot unmount");
}

}  // namespace graphlane
