#include "fuse/mount/descriptor_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "iomgr/base/files/passed_fds.h"

namespace graphlane::fuse {
namespace {

struct Envelope {
  Envelope() {
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
  }
  dev_t device_number = 0;
  iovec piece{.iov_base = &device_number, .iov_len = sizeof device_number};
  PassedFds<1> passed;
  msghdr message = {};
};

}  // namespace

Outcome<SocketPair> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return os_error(errno, "socket", "cannot make");
  }
  return SocketPair{.first = Fd(ends[0]), .second = Fd(ends[1])};
}

Result<void> send_mounted(int socket, const MountedDevice& mounted) {
  Envelope envelope;
  envelope.device_number = mounted.device_number;
  const int fd = mounted.fuse.get();
  envelope.passed.attach({&fd, 1}, &envelope.message);
  ssize_t sent;
  do sent = ::sendmsg(socket, &envelope.message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return last_errno();
  return {};
}

Result<MountedDevice> receive_mounted(int socket) {
  Envelope envelope;
  envelope.passed.make_room(&envelope.message);
  ssize_t received;
  do received = ::recvmsg(socket, &envelope.message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received < 0) return last_errno();
  Fd fuse;
  for_each_passed(envelope.message, [&fuse](int fd) { fuse.reset(fd); });
  if (received == 0 || !fuse) return Errno{ENOTCONN};
  return MountedDevice{.fuse = std::move(fuse), .device_number = envelope.device_number};
}

}  // namespace graphlane::fuse
