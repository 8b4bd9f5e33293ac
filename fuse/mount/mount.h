// Mounts a volume as a filesystem, and unmounts it.
//
//   VOL on disk                            at the mount
//   meta, degree, …      plain files       the same, read and write
//   column   (stub)      parts on devices  one file of its logical size, read-only
//   .graphlane/          control           reachable by name, not listed, read-only
//
// The mount may lie over VOL itself, because the volume's root descriptor was opened before the
// mount.
//
// A mount made by root serves all users (default_permissions, allow_other), and new files belong to
// the caller. A mount made by another user serves that user only.
//
// Threads: mount_volume() forks when it is to run in the background. Call it before the process
// starts threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iomgr/base/process/memory_limit.h"
#include "iomgr/server/server_options.h"
#include "iomgr/volume/volume.h"

namespace graphlane::fuse {

inline constexpr uint32_t kMountThreadsMin = 4;  // fewer starve parallel readers (README.md)

// Requests in flight without a program waiting, instead of libfuse's 12. They must hold the
// read-ahead of several streams over several devices, because lanes order only requests that have
// reached them. As many threads serve them.
inline constexpr uint32_t kBackgroundMin = 128;
inline constexpr uint32_t kBackgroundMax = 256;

struct MountOptions : ServerOptions {
  std::string mountpoint;   // empty: the volume's own directory
  bool foreground = false;  // serve in this process until unmounted
  bool read_only = false;
  bool allow_other = false;  // root always does
  // 0: kBackgroundMax, fewer if memory or descriptors are short; at least kMountThreadsMin.
  uint32_t thread_count = 0;
  uint64_t max_read_bytes = 16u << 20;    // kernel, libfuse and pipes may allow less
  double entry_timeout_seconds = 1.0;     // how long the kernel may cache a name
  double attr_timeout_seconds = 1.0;      // how long it may cache size, owner and times
  double negative_timeout_seconds = 0.0;  // how long it may cache that a name does not exist
  IoMode io_mode = IoMode::kAuto;
  bool no_access_times = false;           // noatime, for the host's files too
  bool of_one_command = false;            // a private mount (private_mount.h); not an option of -o
  bool remount = false;                   // change the kernel_flags of an existing mount
  std::vector<std::string> kernel_flags;  // "nosuid", "ro", … in the order given

  // Takes a list as mount(8) gives it: "ro,threads=8,io=direct". Accepts what mount(8) and fstab
  // pass to every filesystem (rw, defaults, noauto, _netdev, …). EINVAL, with one line: unknown
  // option or value.
  Outcome<void> parse(std::string_view list);
};

// Serves until it is unmounted or gets SIGINT, SIGTERM or SIGHUP. In the background (not
// `foreground`) it returns once the mount answers. The daemon, a child in its own session, never
// returns from the call. EBUSY: already mounted there.
Outcome<void> mount_volume(std::shared_ptr<const Volume> volume, const MountOptions& options);

// Gives the mount at options.mountpoint the options' kernel_flags. EINVAL: it is not a Graphlane
// mount; EPERM: needs root.
Outcome<void> remount(const MountOptions& options);

// Unmounts a volume, even if its daemon has died. EBUSY: in use; EINVAL: `mountpoint` is not a
// Graphlane mount.
Outcome<void> unmount(const std::string& mountpoint);

}  // namespace graphlane::fuse
