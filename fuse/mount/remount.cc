// mount -o remount: changes the flags of an existing mount. The kernel enforces them, without the
// daemon.
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>

#include "fuse/mount/kernel_flags.h"
#include "fuse/mount/mount.h"
#include "fuse/mount/mountpoint.h"
#include "iomgr/volume/mount_table.h"

namespace graphlane::fuse {
namespace {

constexpr std::array<KernelFlag, 22> kKernelFlags = {{
    {.name = "ro", .set = MS_RDONLY},
    {.name = "rw", .clear = MS_RDONLY},
    {.name = "suid", .clear = MS_NOSUID},
    {.name = "nosuid", .set = MS_NOSUID},
    {.name = "dev", .clear = MS_NODEV},
    {.name = "nodev", .set = MS_NODEV},
    {.name = "exec", .clear = MS_NOEXEC},
    {.name = "noexec", .set = MS_NOEXEC},
    {.name = "async", .clear = MS_SYNCHRONOUS},
    {.name = "sync", .set = MS_SYNCHRONOUS},
    {.name = "dirsync", .set = MS_DIRSYNC},
    {.name = "atime", .clear = MS_NOATIME, .for_libfuse = false},
    {.name = "noatime", .set = MS_NOATIME, .clear = MS_RELATIME | MS_STRICTATIME},
    {.name = "diratime", .clear = MS_NODIRATIME, .for_libfuse = false},
    {.name = "nodiratime", .set = MS_NODIRATIME, .for_libfuse = false},
    {.name = "relatime",
     .set = MS_RELATIME,
     .clear = MS_NOATIME | MS_STRICTATIME,
     .for_libfuse = false},
    {.name = "norelatime", .clear = MS_RELATIME, .for_libfuse = false},
    {.name = "nostrictatime", .clear = MS_STRICTATIME, .for_libfuse = false},
    {.name = "nolazytime", .clear = MS_LAZYTIME, .for_libfuse = false},
    {.name = "nomand", .for_libfuse = false},
    {.name = "noiversion", .for_libfuse = false},
    {.name = "loud", .for_libfuse = false},
}};

// The mount's present flags, translated from statvfs()'s names.
Outcome<unsigned long> current_flags(const std::string& mountpoint) {
  static constexpr std::array<std::pair<unsigned long, unsigned long>, 8> kNames = {{
      {ST_RDONLY, MS_RDONLY},
      {ST_NOSUID, MS_NOSUID},
      {ST_NODEV, MS_NODEV},
      {ST_NOEXEC, MS_NOEXEC},
      {ST_SYNCHRONOUS, MS_SYNCHRONOUS},
      {ST_NOATIME, MS_NOATIME},
      {ST_NODIRATIME, MS_NODIRATIME},
      {ST_RELATIME, MS_RELATIME},
  }};
  struct statvfs now;
  if (::statvfs(mountpoint.c_str(), &now) != 0) {
    return os_error(errno, mountpoint, "cannot look at the mount");
  }
  unsigned long flags = 0;
  for (const auto& [shown, flag] : kNames) flags |= (now.f_flag & shown) != 0 ? flag : 0;
  return flags;
}

}  // namespace

const KernelFlag* find_kernel_flag(std::string_view name) {
  const auto found = std::find_if(kKernelFlags.begin(), kKernelFlags.end(),
                                  [&](const KernelFlag& flag) { return flag.name == name; });
  return found == kKernelFlags.end() ? nullptr : &*found;
}

Outcome<void> remount(const MountOptions& options) {
  const Outcome<std::string> path = absolute_mountpoint(options.mountpoint);
  if (!path) return path.error();
  if (!find_volume_mount(*path)) {
    return make_error(EINVAL, "{}: no Graphlane volume is mounted there", options.mountpoint);
  }
  Outcome<unsigned long> flags = current_flags(*path);
  if (!flags) return flags.error();
  for (const std::string& name : options.kernel_flags) {
    const KernelFlag& flag = *find_kernel_flag(name);
    *flags = (*flags & ~flag.clear) | flag.set;
  }
  if (::mount(nullptr, path->c_str(), nullptr, *flags | MS_REMOUNT, nullptr) == 0) return {};
  if (errno == EBUSY) return make_error(EBUSY, "{}: in use: a file is open for writing", *path);
  return os_error(errno, *path, "cannot remount");
}

}  // namespace graphlane::fuse
