#include "shim/ask_server.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>

#include "iomgr/base/fd.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

// The counters of the mounts that this process has read from. They stay mapped.
struct Mapping {
  char server[kServerNameSize];
  const Generation* counters;
};
constexpr uint32_t kMappingsMax = 32;
Mapping mappings[kMappingsMax];
uint32_t mapping_count = 0;

const Generation* counters_of(const char* server, int memfd) {
  for (uint32_t i = 0; i < mapping_count; ++i) {
    if (std::memcmp(mappings[i].server, server, kServerNameSize) == 0) return mappings[i].counters;
  }
  if (mapping_count == kMappingsMax) return nullptr;
  // The system call: mmap is one of our hooks.
  void* memory = reinterpret_cast<void*>(::syscall(SYS_mmap, nullptr, kGenerationsBytes, PROT_READ,
                                                   MAP_SHARED, memfd, 0));
  if (memory == MAP_FAILED) return nullptr;
  Mapping& mapping = mappings[mapping_count++];
  std::memcpy(mapping.server, server, kServerNameSize);
  mapping.counters = static_cast<const Generation*>(memory);
  return mapping.counters;
}

Fd connect_to(const char* server) {
  Fd socket(static_cast<int>(::syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
  if (!socket) return {};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    ::syscall(SYS_setsockopt, socket.get(), SOL_SOCKET, option, &kServerPatience,
              sizeof kServerPatience);
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, server, kServerNameSize);
  const size_t length = offsetof(sockaddr_un, sun_path) + 1 + kServerNameSize;
  if (::syscall(SYS_connect, socket.get(), &address, length) != 0) return {};
  return socket;
}

bool send_question(int socket, int fd, uint32_t question) {
  ServerRequest request{.magic = question};
  iovec piece{.iov_base = &request, .iov_len = sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL) ==
         static_cast<long>(sizeof request);
}

struct Received {
  ssize_t length = -1;
  int fds[kServerDescriptorsMax];
  uint32_t fd_count = 0;

  // Whatever the receiver has not taken.
  ~Received() {
    for (uint32_t i = 0; i < fd_count; ++i) {
      if (fds[i] >= 0) sys::close(fds[i]);
    }
  }
  int take(uint32_t index) {
    const int fd = fds[index];
    fds[index] = -1;
    return fd;
  }
};

void receive(int socket, void* buffer, size_t size, Received* received) {
  iovec piece{.iov_base = buffer, .iov_len = size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof received->fds)];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  received->length = ::syscall(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC);
  if (received->length < 0) return;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return;
  received->fd_count = static_cast<uint32_t>((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(received->fds, CMSG_DATA(header), received->fd_count * sizeof(int));
}

ServerAnswer ask(int fd, uint32_t question, Fd* connection) {
  static char buffer[kServerReplyMax];
  ServerAnswer answer;
  answer.error = EIO;
  char server[kServerNameSize];
  if (::fgetxattr(fd, kServerXattr, server, sizeof server) != kServerNameSize) return answer;
  Fd socket = connect_to(server);
  if (!socket || !send_question(socket.get(), fd, question)) return answer;
  Received received;
  receive(socket.get(), buffer, sizeof buffer, &received);
  const auto* reply = reinterpret_cast<const ServerReply*>(buffer);
  if (received.length < static_cast<ssize_t>(sizeof *reply) ||
      reply->magic != ServerReply::kMagic || reply->generation_index >= kGenerationCount) {
    return answer;
  }
  if (received.fd_count == 0) return answer.error = reply->error != 0 ? reply->error : EIO, answer;
  const Generation* counters = counters_of(server, received.fds[0]);
  if (counters == nullptr) return answer;
  answer.counter = &counters[reply->generation_index];
  answer.generation = reply->generation;
  answer.reply = reply;
  answer.error = reply->error;
  if (answer.error != 0) return answer;
  const bool shares = question == ShareRequest::kMagic;
  const uint32_t fd_count = shares ? 1 : reply->device_count;
  if (reply->device_count > kDeviceCountMax || received.fd_count != 1 + fd_count) {
    return answer.error = EIO, answer;
  }
  if (shares) answer.image = received.take(1);
  for (uint32_t d = 0; !shares && d < fd_count; ++d) answer.parts[d] = received.take(1 + d);
  answer.directories = buffer + sizeof *reply;
  answer.directories_length = static_cast<size_t>(received.length) - sizeof *reply;
  if (connection != nullptr) *connection = std::move(socket);
  return answer;
}

}  // namespace

ServerAnswer ask_server(int fd) { return ask(fd, ServerRequest::kMagic, nullptr); }

ServerAnswer ask_to_write(int fd, Fd* connection) {
  return ask(fd, WriteRequest::kMagic, connection);
}

ServerAnswer ask_to_share(int fd, Fd* connection) {
  return ask(fd, ShareRequest::kMagic, connection);
}

}  // namespace graphlane
