// Mounting a volume as a filesystem, and taking the mount away again.
//
//   VOL on disk                            at the mount
//   meta, degree, …      plain files       the same, read and write
//   column   (stub)      parts on devices  one file of its logical size, read-only
//   .graphlane/          control           reachable by name, not listed, read-only
//
// The mount may lie over VOL itself: everything is reached through the volume's
// root descriptor, which is from before the mount.
//
// Whoever mounts as root serves all users (default_permissions, allow_other),
// and new files belong to the caller. An ordinary user serves himself.
//
// Threads: mount_volume() forks when it is to run in the background; call it
// before the process starts threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iomgr/base/process/memory_limit.h"
#include "iomgr/server/server_options.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

inline constexpr uint32_t kMountThreadsMin = 4;  // fewer starve parallel readers (README.md)

// Requests that the kernel has under way without a program waiting, instead of libfuse's
// 12: read-ahead of several streams over several devices, all of it, as lanes put in order only what
// has come to them. As many threads serve them.
inline constexpr uint32_t kBackgroundMin = 128;
inline constexpr uint32_t kBackgroundMax = 256;

struct MountOptions : ServerOptions {
  std::string mountpoint;     // empty: the volume's own directory
  bool foreground = false;    // serve in this process until unmounted
  bool read_only = false;
  bool allow_other = false;   // root always does
  // 0: kBackgroundMax, fewer where memory or descriptors are short; never below
  // kMountThreadsMin.
  uint32_t thread_count = 0;
  uint64_t max_read_bytes = 16u << 20;  // kernel, libfuse and pipes may allow less
  double entry_timeout_seconds = 1.0;     // how long the kernel believes a name
  double attr_timeout_seconds = 1.0;      // … and size, owner and times
  double negative_timeout_seconds = 0.0;  // … and that there is no such name
  IoMode io_mode = IoMode::kAuto;
  bool no_access_times = false;           // noatime, for the host's files as well
  bool of_one_command = false;            // a private mount (private_mount.h); no option of a list
  bool remount = false;                   // no new mount: kernel_flags for the one that is there
  std::vector<std::string> kernel_flags;  // "nosuid", "ro", … in the order given

  // Takes one list as mount(8) gives it: "ro,threads=8,io=direct". What mount(8)
  // and fstab pass to everyone (rw, defaults, noauto, _netdev, …) is accepted.
  // EINVAL with one line for an unknown option or value.
  Outcome<void> parse(std::string_view list);
};

// Serves until unmounted or told to stop by SIGINT, SIGTERM or SIGHUP. In the
// background (not `foreground`) it returns as soon as the mount answers, and the
// daemon, a child in a session of its own, never returns from the call.
// EBUSY: mounted there already.
Outcome<void> mount_volume(std::shared_ptr<const Volume> volume, const MountOptions& options);

// Gives the mount at options.mountpoint the options' kernel_flags. EINVAL: there
// is no Graphlane mount; EPERM: only root may.
Outcome<void> remount(const MountOptions& options);

// Unmounts a volume, also one whose daemon died. EBUSY: in use; EINVAL: there is
// no Graphlane mount at `mountpoint`.
Outcome<void> unmount(const std::string& mountpoint);

}  // namespace graphlane
