#include "adapters/share/wire/message_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "iomgr/base/files/passed_fds.h"

namespace graphlane::share {
namespace {

constexpr uint64_t kOverflowUserDefault = 65534;

}  // namespace

Result<void> send_message(int socket, std::string_view bytes, std::span<const int> fds, int flags) {
  assert(bytes.size() <= kMessageBytesMax && fds.size() <= kMessageFdsMax);
  iovec piece{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  PassedFds<kMessageFdsMax> passed;
  passed.attach(fds, &message);
  ssize_t sent;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | flags);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return last_errno();
  return {};
}

Result<Message> receive_message(int socket, int flags) {
  // A peek at the length costs less than clearing room for the largest message each time.
  ssize_t length;
  do length = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC | flags);
  while (length < 0 && errno == EINTR);
  if (length < 0) return last_errno();
  if (length == 0) return Errno{ECONNRESET};  // none of our messages is empty
  if (static_cast<size_t>(length) > kMessageBytesMax) return Errno{EMSGSIZE};
  Message received{.bytes = std::string(static_cast<size_t>(length), '\0'), .fds = {}};
  iovec piece{.iov_base = received.bytes.data(), .iov_len = received.bytes.size()};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  PassedFds<kMessageFdsMax> passed;
  passed.make_room(&message);
  // A raw system call, because an Fd closes received descriptors, which ThreadSanitizer misses.
  do length = ::syscall(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC | flags);
  while (length < 0 && errno == EINTR);
  if (length < 0) return last_errno();
  for_each_passed(message, [&received](int fd) { received.fds.emplace_back(fd); });
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return Errno{EMSGSIZE};
  received.bytes.resize(static_cast<size_t>(length));
  return received;
}

void enlarge_buffers(int socket) {
  const int size = 4 * kMessageBytesMax;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

Result<uid_t> peer_user(int socket) {
  ucred peer;
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return last_errno();
  return peer.uid;
}

bool is_mapped_user(uid_t user) {
  static const uint64_t nobody = [] {
    char digits[16] = {};
    const Fd file(sys::openat(AT_FDCWD, "/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC));
    const bool told = file && sys::read(file.get(), digits, sizeof digits - 1) > 0;
    return told ? std::strtoull(digits, nullptr, 10) : kOverflowUserDefault;
  }();
  return user != nobody;
}

}  // namespace graphlane::share
