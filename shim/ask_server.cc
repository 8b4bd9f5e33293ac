#include "shim/ask_server.h"

#include <sys/mman.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "iomgr/base/fd.h"
#include "iomgr/base/sys.h"
#include "iomgr/server_socket.h"
#include "shim/locate.h"

namespace graphlane {
namespace {

constexpr int64_t kSilenceSeconds = 60;

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

const ServerReply* reply_in(const ServerMessage& message, const char* buffer) {
  const auto* reply = reinterpret_cast<const ServerReply*>(buffer);
  const bool sensible = message.length_bytes >= static_cast<ssize_t>(sizeof *reply) &&
                        reply->magic == ServerReply::kMagic &&
                        reply->generation_index < kGenerationCount;
  return sensible ? reply : nullptr;
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

ShareAnswer ask_to_share(Fd connection, int fd) {
  alignas(ServerReply) static char buffer[sizeof(ServerReply)];
  ShareAnswer answer;
  if (!connection || !send_question(connection.get(), fd, ShareRequest::kMagic)) return answer;
  ServerMessage received;
  receive_message(connection.get(), buffer, sizeof buffer, &received);
  const ServerReply* const reply = reply_in(received, buffer);
  if (reply == nullptr || reply->error != 0 || received.fd_count != 1) return answer;
  answer.generation = reply->generation;
  answer.frames.reset(received.take(0));
  answer.connection = std::move(connection);
  return answer;
}

bool is_trusted(int connection, int stub_fd, int run_directory) {
  ucred server;
  struct stat stub, volume;
  if (!find_peer(connection, &server) || sys::fstat(stub_fd, &stub) != 0 ||
      sys::fstat(run_directory, &volume) != 0) {
    return false;
  }
  return server.uid == 0 || server.uid == static_cast<uid_t>(::syscall(SYS_geteuid)) ||
         server.uid == stub.st_uid || server.uid == volume.st_uid;
}

int64_t seconds_now() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

}  // namespace

ServerAnswer ask_server(int fd) { return ask(fd, ServerRequest::kMagic, nullptr); }

ServerAnswer ask_to_write(int fd, Fd* connection) {
  return ask(fd, WriteRequest::kMagic, connection);
}

ShareAnswer ask_mount_to_share(int fd) {
  char server[kServerNameSize];
  return ask_to_share(connect_to_mount(fd, server), fd);
}

ShareAnswer ask_volume_to_share(int stub_fd) {
  static int64_t silent_until_s = 0;
  if (seconds_now() < silent_until_s) return {};
  const Fd run_directory = open_run_directory(stub_fd);
  if (!run_directory) return {};
  errno = 0;
  ShareAnswer answer;
  Fd connection = ServerAddress::of_volume(run_directory.get()).connect(kVolumeServerPatience);
  if (connection && is_trusted(connection.get(), stub_fd, run_directory.get())) {
    answer = ask_to_share(std::move(connection), stub_fd);
  }
  if (errno == EAGAIN) silent_until_s = seconds_now() + kSilenceSeconds;
  if (answer.connection) set_patience(answer.connection.get(), kServerPatience);
  return answer;
}

}  // namespace graphlane
