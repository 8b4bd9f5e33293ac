// Passes the /dev/fuse descriptor of a private mount, with the mount's st_dev, to the daemon
// (SCM_RIGHTS).
#pragma once

#include <sys/types.h>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::fuse {

struct SocketPair {
  Fd first;
  Fd second;
};

Outcome<SocketPair> make_socket_pair();

struct MountedDevice {
  Fd fuse;
  dev_t device_number = 0;
};

Result<void> send_mounted(int socket, const MountedDevice& mounted);

// ENOTCONN: the other end was closed.
Result<MountedDevice> receive_mounted(int socket);

}  // namespace graphlane::fuse
