#include "shim/ask_server.h"

#include <sys/mman.h>
#include <sys/xattr.h>

#include <cstring>

#include "iomgr/base/fd.h"
#include "iomgr/base/sys.h"
#include "iomgr/server_socket.h"
#include "shim/locate.h"

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

Fd connect_to_mount(int fd, char* name) {
  if (::fgetxattr(fd, kServerXattr, name, kServerNameSize) != kServerNameSize) return {};
  return ServerAddress::of_mount(name).connect(kServerPatience);
}

ServerAnswer ask(int fd, uint32_t question, Fd* connection) {
  alignas(ServerReply) static char buffer[kServerReplyMax];
  ServerAnswer answer;
  answer.error = EIO;
  char server[kServerNameSize];
  Fd socket = connect_to_mount(fd, server);
  if (!socket || !send_question(socket.get(), fd, question)) return answer;
  ServerMessage received;
  receive_message(socket.get(), buffer, sizeof buffer, &received);
  const ServerReply* const reply = reply_in(received, buffer);
  if (reply == nullptr) return answer;
  if (received.fd_count == 0) return answer.error = reply->error != 0 ? reply->error : EIO, answer;
  const Generation* counters = counters_of(server, received.fds[0]);
  if (counters == nullptr) return answer;
  answer.counter = &counters[reply->generation_index];
  answer.generation = reply->generation;
  answer.reply = reply;
  answer.error = reply->error;
  if (answer.error != 0) return answer;
  if (reply->device_count > kDeviceCountMax || received.fd_count != 1 + reply->device_count) {
    return answer.error = EIO, answer;
  }
  for (uint32_t d = 0; d < reply->device_count; ++d) answer.parts[d] = received.take(1 + d);
  answer.directories = buffer + sizeof *reply;
  answer.directories_length = static_cast<size_t>(received.length_bytes) - sizeof *reply;
  if (connection != nullptr) *connection = std::move(socket);
  return answer;
}

}  // namespace

ServerAnswer ask_server(int fd) { return ask(fd, ServerRequest::kMagic, nullptr); }

ServerAnswer ask_to_write(int fd, Fd* connection) {
  return ask(fd, WriteRequest::kMagic, connection);
}

Fd ask_mount_to_map(int fd) {
  alignas(ServerReply) static char buffer[sizeof(ServerReply)];
  char server[kServerNameSize];
  const Fd socket = connect_to_mount(fd, server);
  if (!socket || !send_question(socket.get(), fd, MapRequest::kMagic)) return {};
  ServerMessage received;
  receive_message(socket.get(), buffer, sizeof buffer, &received);
  const ServerReply* const reply = reply_in(received, buffer);
  const bool may = reply != nullptr && reply->error == 0 && received.fd_count == 1;
  return may ? Fd(received.take(0)) : Fd();
}

ShareAnswer ask_mount_to_share(int fd) {
  char server[kServerNameSize];
  return ask_to_share(connect_to_mount(fd, server), fd);
}

ShareAnswer ask_volume_to_share(int stub_fd) {
  const Fd run_directory = open_run_directory(stub_fd);
  return run_directory ? ask_volume_to_share(run_directory.get(), stub_fd) : ShareAnswer();
}

}  // namespace graphlane
