// The daemon of one private mount (private_mount.h).
#pragma once

#include <memory>

#include "fuse/mount/mount.h"
#include "iomgr/base/fd.h"
#include "iomgr/volume/volume.h"

namespace graphlane::fuse {

// Waits on `socket` for the command's /dev/fuse descriptor, reports there whether it serves
// (daemonize.h), and serves until the mount is gone. Call it in a child process forked for it.
[[noreturn]] void run_private_daemon(std::shared_ptr<const Volume> volume,
                                     const MountOptions& options, Fd socket);

}  // namespace graphlane::fuse
