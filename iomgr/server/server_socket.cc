#include "iomgr/server/server_socket.h"

#include <sys/socket.h>

#include <cstring>

#include "iomgr/base/files/passed_fds.h"
#include "iomgr/base/files/reopen.h"

namespace graphlane {
namespace {

// Connections that wait to be accepted. With more, a client would wait longer behind one that
// floods the server; with fewer, one user's programs would keep another's out while the server is
// busy.
constexpr int kBacklog = 256;

Fd make_socket(int flags) {
  return Fd(
      static_cast<int>(::syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0)));
}

}  // namespace

ServerAddress ServerAddress::of_mount(const char* name) {
  static_assert(1 + kServerNameSize <= sizeof sockaddr_un::sun_path);
  ServerAddress made;  // abstract: the name begins with a NUL
  std::memcpy(made.address_.sun_path + 1, name, kServerNameSize);
  made.length_ = offsetof(sockaddr_un, sun_path) + 1 + kServerNameSize;
  return made;
}

ServerAddress ServerAddress::of_volume(int run_directory) {
  const ProcPath directory(run_directory);
  static_assert(sizeof directory.text + 1 + sizeof kServerSocketName <=
                sizeof sockaddr_un::sun_path);
  ServerAddress made;
  const size_t length = std::strlen(directory.c_str());
  std::memcpy(made.address_.sun_path, directory.c_str(), length);
  made.address_.sun_path[length] = '/';
  std::memcpy(made.address_.sun_path + length + 1, kServerSocketName, sizeof kServerSocketName);
  made.length_ = sizeof made.address_;
  return made;
}

ServerAddress ServerAddress::of_file(int socket_file) {
  const ProcPath file(socket_file);
  ServerAddress made;
  std::memcpy(made.address_.sun_path, file.c_str(), std::strlen(file.c_str()));
  made.length_ = sizeof made.address_;
  return made;
}

Fd ServerAddress::listen() const {
  Fd socket = make_socket(SOCK_NONBLOCK);
  if (!socket || ::syscall(SYS_bind, socket.get(), &address_, length_) != 0 ||
      ::syscall(SYS_listen, socket.get(), kBacklog) != 0) {
    return {};
  }
  return socket;
}

Fd ServerAddress::connect(timeval patience) const {
  Fd socket = make_socket(0);
  if (!socket) return {};
  set_patience(socket.get(), patience);
  if (::syscall(SYS_connect, socket.get(), &address_, length_) != 0) return {};
  return socket;
}

bool ServerAddress::send_byte() const {
  const Fd socket(static_cast<int>(::syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  const char byte = 1;
  return socket && ::syscall(SYS_sendto, socket.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                             &address_, length_) == 1;
}

void set_patience(int socket, timeval patience) {
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    ::syscall(SYS_setsockopt, socket, SOL_SOCKET, option, &patience, sizeof patience);
  }
}

bool send_message(int socket, std::span<const iovec> pieces, std::span<const int> fds) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  PassedFds<kServerDescriptorsMax> passed;
  passed.attach(fds, &message);
  long sent;
  do sent = ::syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);  // the process was stopped (signal(7)), as below
  return sent >= 0;
}

bool send_question(int socket, const ServerRequest& request, int fd) {
  const iovec piece{.iov_base = const_cast<ServerRequest*>(&request), .iov_len = sizeof request};
  return send_message(socket, {&piece, 1}, {&fd, fd >= 0 ? 1u : 0u});
}

bool receive_proof(int socket, const Uuid& secret) {
  ServerProof proof;
  long received;
  do received = ::syscall(SYS_recvfrom, socket, &proof, sizeof proof, 0, nullptr, nullptr);
  while (received < 0 && errno == EINTR);
  return received == static_cast<long>(sizeof proof) && proof.magic == ServerProof::kMagic &&
         proof.secret == secret;
}

void receive_message(int socket, void* buffer, size_t size_bytes, ServerMessage* received) {
  iovec piece{.iov_base = buffer, .iov_len = size_bytes};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  PassedFds<kServerDescriptorsMax> passed;
  passed.make_room(&message);
  do received->length_bytes = ::syscall(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC);
  while (received->length_bytes < 0 && errno == EINTR);
  if (received->length_bytes < 0) return;
  for_each_passed(message, [received](int fd) { received->fds[received->fd_count++] = fd; });
}

const ServerReply* reply_in(const ServerMessage& message, const char* buffer) {
  const auto* reply = reinterpret_cast<const ServerReply*>(buffer);
  const bool sensible = message.length_bytes >= static_cast<ssize_t>(sizeof *reply) &&
                        reply->magic == ServerReply::kMagic &&
                        reply->generation_index < kGenerationCount;
  return sensible ? reply : nullptr;
}

bool find_peer(int socket, ucred* peer) {
  socklen_t length = sizeof *peer;
  return ::syscall(SYS_getsockopt, socket, SOL_SOCKET, SO_PEERCRED, peer, &length) == 0;
}

}  // namespace graphlane
