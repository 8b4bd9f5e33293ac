#include "shim/locate/ask_server.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "iomgr/base/fd.h"
#include "iomgr/base/sys.h"
#include "iomgr/server/server_socket.h"
#include "shim/locate/locate.h"

namespace graphlane::shim {
namespace {

// The counters of the mounts that this process has read from; they stay mapped.
struct Mapping {
  char server[kServerNameSize];
  const Generation* counters;
  DeviceCounts* counts;  // for `graphlane stat`; null: not mapped yet
};
constexpr uint32_t kMappingsMax = 32;
Mapping mappings[kMappingsMax];
uint32_t mapping_count = 0;

Mapping* mapping_of(const char* server) {
  for (uint32_t i = 0; i < mapping_count; ++i) {
    if (std::memcmp(mappings[i].server, server, kServerNameSize) == 0) return &mappings[i];
  }
  return nullptr;
}

// Null: not a sealed memfd, so it may shrink, fail or block; or no memory.
void* map_memfd(int memfd, size_t size_bytes, int protection) {
  struct stat st;
  const int seals = sys::fcntl(memfd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || sys::fstat(memfd, &st) != 0 ||
      static_cast<size_t>(st.st_size) < size_bytes) {
    return nullptr;
  }
  // Not mmap(), which is one of the library's hooks.
  void* memory = reinterpret_cast<void*>(
      ::syscall(SYS_mmap, nullptr, size_bytes, protection, MAP_SHARED, memfd, 0));
  return memory == MAP_FAILED ? nullptr : memory;
}

const Generation* counters_of(const char* server, int memfd) {
  if (const Mapping* const known = mapping_of(server)) return known->counters;
  if (mapping_count == kMappingsMax) return nullptr;
  const void* const memory = map_memfd(memfd, kGenerationsBytes, PROT_READ);
  if (memory == nullptr) return nullptr;
  Mapping& mapping = mappings[mapping_count++];
  std::memcpy(mapping.server, server, kServerNameSize);
  mapping.counters = static_cast<const Generation*>(memory);
  return mapping.counters;
}

// Null: nothing is counted. Call it after counters_of().
DeviceCounts* counts_of(const char* server, int memfd) {
  Mapping* const known = mapping_of(server);
  if (known == nullptr) return nullptr;
  if (known->counts == nullptr) {
    known->counts =
        static_cast<DeviceCounts*>(map_memfd(memfd, kClientCountsBytes, PROT_READ | PROT_WRITE));
  }
  return known->counts;
}

// The counters of served volumes; they stay mapped.
struct VolumeCounts {
  Uuid volume;
  dev_t device;  // of the server's socket, as its inode
  ino_t inode;
  int64_t next_look_s;
  DeviceCounts* counts;  // null: there is none
};
VolumeCounts volume_counts[kMappingsMax];
constexpr int64_t kSilentServerPause = 60;  // seconds until a server that did not answer is asked
uint32_t volume_count = 0;

// A server that did not prove itself. It is not asked for a minute, because waiting for it costs a
// second.
constexpr int64_t kUnprovenSeconds = 60;
struct {
  char server[kServerNameSize];
  int64_t until_s;
} unproven;

int64_t proof_clock_s() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

// A connection to the mount's server, with the question sent, and the server's proof received
// (iomgr/server/server_protocol.h, "Authentication"). Empty: there is none.
Fd ask_mount(int fd, uint32_t question, char* server) {
  TicketGrant grant;
  if (::syscall(SYS_ioctl, fd, kTicketIoctl, &grant) != 0) return {};
  std::memcpy(server, grant.server, kServerNameSize);
  const bool is_unproven = std::memcmp(unproven.server, server, kServerNameSize) == 0;
  if (is_unproven && proof_clock_s() < unproven.until_s) return {};
  Fd socket = ServerAddress::of_mount(server).connect(kProofPatience);
  if (!socket) return {};  // no listener
  if (!send_question(socket.get(), {.magic = question, .ticket = grant.ticket}) ||
      !receive_proof(socket.get(), grant.secret)) {
    std::memcpy(unproven.server, server, kServerNameSize);
    unproven.until_s = proof_clock_s() + kUnprovenSeconds;
    return {};
  }
  set_patience(socket.get(), kServerPatience);
  return socket;
}

// Whether these are regular files with the requested access. The server of a foreign FUSE
// filesystem may send anything.
bool are_parts(const int* fds, uint32_t count, int access) {
  for (uint32_t d = 0; d < count; ++d) {
    struct stat st;
    const int flags = sys::fcntl(fds[d], F_GETFL);
    if (flags < 0 || (flags & O_PATH) != 0 || (flags & O_ACCMODE) != access ||
        sys::fstat(fds[d], &st) != 0 || !S_ISREG(st.st_mode)) {
      return false;
    }
  }
  return true;
}

ServerAnswer ask(int fd, uint32_t question, Fd* connection, AppendProgress** progress) {
  alignas(ServerReply) static char buffer[kServerReplyMax];
  ServerAnswer answer;
  answer.error = EIO;
  char server[kServerNameSize];
  Fd socket = ask_mount(fd, question, server);
  if (!socket) return answer;
  ServerMessage received;
  receive_message(socket.get(), buffer, sizeof buffer, &received);
  const ServerReply* const reply = reply_in(received, buffer);
  if (reply == nullptr) return answer;
  if (received.fd_count == 0) return answer.error = reply->error != 0 ? reply->error : EIO, answer;
  const Generation* counters = counters_of(server, received.fds[0]);
  if (counters == nullptr) return answer;
  answer.counter = &counters[reply->generation_index];
  answer.life = reinterpret_cast<const std::atomic<uint32_t>*>(
      reinterpret_cast<const char*>(counters) + kLifeOffset);
  answer.generation = reply->generation;
  answer.reply = reply;
  answer.error = reply->error;
  if (answer.error != 0) return answer;
  const uint32_t count = reply->device_count;
  if (count > kDeviceCountMax || received.fd_count < 1 + count) return answer.error = EIO, answer;
  const bool writes = question == WriteRequest::kMagic;
  answer.has_sums = !writes && received.fd_count >= 1 + 2 * count;
  if (writes && received.fd_count < 2 + count) return answer.error = EIO, answer;
  const uint32_t counts_index = 1 + (answer.has_sums ? 2 : 1) * count + (writes ? 1 : 0);
  if (received.fd_count > counts_index + 1) return answer.error = EIO, answer;
  const int access = writes ? O_WRONLY : O_RDONLY;
  if (!are_parts(received.fds + 1, count, access)) return answer.error = EIO, answer;
  if (answer.has_sums && !are_parts(received.fds + 1 + count, count, O_RDONLY)) {
    return answer.error = EIO, answer;
  }
  if (writes) {
    void* const page = map_memfd(received.fds[1 + count], kAppendPageBytes, PROT_READ | PROT_WRITE);
    if (page == nullptr) return answer.error = ENOMEM, answer;
    *progress = static_cast<AppendProgress*>(page);
  }
  for (uint32_t d = 0; d < count; ++d) answer.parts[d] = received.take(1 + d);
  for (uint32_t d = 0; d < count && answer.has_sums; ++d) {
    answer.sums[d] = received.take(1 + count + d);
  }
  if (received.fd_count > counts_index) {
    answer.counts = counts_of(server, received.fds[counts_index]);
  }
  answer.directories = buffer + sizeof *reply;
  answer.directories_length = static_cast<size_t>(received.length_bytes) - sizeof *reply;
  if (connection != nullptr) *connection = std::move(socket);
  return answer;
}

}  // namespace

ServerAnswer ask_server(int fd) { return ask(fd, ServerRequest::kMagic, nullptr, nullptr); }

ServerAnswer ask_to_write(int fd, Fd* connection, AppendProgress** progress) {
  return ask(fd, WriteRequest::kMagic, connection, progress);
}

Fd ask_mount_to_map(int fd) {
  alignas(ServerReply) static char buffer[sizeof(ServerReply)];
  char server[kServerNameSize];
  const Fd socket = ask_mount(fd, MapRequest::kMagic, server);
  if (!socket) return {};
  ServerMessage received;
  receive_message(socket.get(), buffer, sizeof buffer, &received);
  const ServerReply* const reply = reply_in(received, buffer);
  const bool may = reply != nullptr && reply->error == 0 && received.fd_count == 1;
  return may ? Fd(received.take(0)) : Fd();
}

DeviceCounts* counts_of_volume(int stub_fd, const Uuid& volume) {
  const auto is_it = [&](const VolumeCounts& counts) { return counts.volume == volume; };
  VolumeCounts* known = std::find_if(volume_counts, volume_counts + volume_count, is_it);
  const int64_t now_s = proof_clock_s();
  if (known == volume_counts + volume_count) {
    if (volume_count == kMappingsMax) return nullptr;
    *known = {.volume = volume, .device = 0, .inode = 0, .next_look_s = now_s, .counts = nullptr};
    volume_count += 1;
  }
  if (now_s < known->next_look_s) return known->counts;
  known->next_look_s = now_s + 1;
  const Fd run = open_run_directory(stub_fd);
  struct stat socket;
  if (!run ||
      ::syscall(SYS_newfstatat, run.get(), kServerSocketName, &socket, AT_SYMLINK_NOFOLLOW) != 0) {
    return known->counts;
  }
  if (socket.st_ino == known->inode && socket.st_dev == known->device) return known->counts;
  const Fd root(sys::openat(run.get(), "../..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd page = root ? ask_volume_for_counts(run.get(), root.get()) : Fd();
  void* const memory =
      page ? map_memfd(page.get(), kClientCountsBytes, PROT_READ | PROT_WRITE) : nullptr;
  if (memory == nullptr) {
    known->next_look_s = now_s + kSilentServerPause;  // it may be stopped
    return known->counts;
  }
  known->counts = static_cast<DeviceCounts*>(memory);
  known->device = socket.st_dev;
  known->inode = socket.st_ino;
  return known->counts;
}

ShareAnswer ask_mount_to_share(int fd) {
  char server[kServerNameSize];
  return receive_share_answer(ask_mount(fd, ShareRequest::kMagic, server));
}

ShareAnswer ask_volume_to_share(int stub_fd) {
  const Fd run_directory = open_run_directory(stub_fd);
  return run_directory ? graphlane::ask_volume_to_share(run_directory.get(), stub_fd)
                       : ShareAnswer();
}

}  // namespace graphlane::shim
