// A descriptor on its way to another process (SCM_RIGHTS).
#pragma once

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane {

struct SocketPair {
  Fd first;
  Fd second;
};

Outcome<SocketPair> make_socket_pair();

Result<void> send_descriptor(int socket, int fd);

// ENOTCONN: the other end was closed.
Result<Fd> receive_descriptor(int socket);

}  // namespace graphlane
