#include "fuse/descriptor_socket.h"

#include <sys/socket.h>

#include <cstring>

namespace graphlane {
namespace {

struct Envelope {
  Envelope() {
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  dev_t device_number = 0;
  iovec piece{.iov_base = &device_number, .iov_len = sizeof device_number};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
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
  cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  ssize_t sent;
  do sent = ::sendmsg(socket, &envelope.message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return last_errno();
  return {};
}

Result<MountedDevice> receive_mounted(int socket) {
  Envelope envelope;
  ssize_t received;
  do received = ::recvmsg(socket, &envelope.message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received < 0) return last_errno();
  const cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
  if (received == 0 || header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    return Errno{ENOTCONN};
  }
  int fd;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return MountedDevice{.fuse = Fd(fd), .device_number = envelope.device_number};
}

}  // namespace graphlane
