#include "iomgr/ask_to_share.h"

#include <cerrno>
#include <ctime>

#include "iomgr/base/sys.h"
#include "iomgr/server_socket.h"

namespace graphlane {
namespace {

constexpr int64_t kSilenceSeconds = 60;

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

bool send_share_question(int connection, int fd, uint32_t client) {
  if (client == 0) return send_question(connection, fd, ShareRequest::kMagic);
  PassedShareRequest request{.client = client};
  const iovec piece{.iov_base = &request, .iov_len = sizeof request};
  return send_message(connection, {&piece, 1}, {&fd, 1});
}

}  // namespace

ShareAnswer ask_to_share(Fd connection, int fd, uint32_t client) {
  alignas(ServerReply) static char buffer[sizeof(ServerReply)];
  ShareAnswer answer;
  if (!connection || !send_share_question(connection.get(), fd, client)) return answer;
  ServerMessage received;
  receive_message(connection.get(), buffer, sizeof buffer, &received);
  const ServerReply* const reply = reply_in(received, buffer);
  if (reply == nullptr || reply->error != 0 || received.fd_count == 0) return answer;
  answer.generation = reply->generation;
  answer.frames.reset(received.take(0));
  const bool passed_on = received.fd_count > 1;
  if (passed_on) connection.reset(received.take(1));
  answer.connection = std::move(connection);
  set_patience(answer.connection.get(), kServerPatience);
  return answer;
}

ShareAnswer ask_volume_to_share(int run_directory, int stub_fd, uint32_t client) {
  static int64_t silent_until_s = 0;
  if (seconds_now() < silent_until_s) return {};
  errno = 0;
  ShareAnswer answer;
  Fd connection = ServerAddress::of_volume(run_directory).connect(kVolumeServerPatience);
  if (connection && is_trusted(connection.get(), stub_fd, run_directory)) {
    answer = ask_to_share(std::move(connection), stub_fd, client);
  }
  if (errno == EAGAIN) silent_until_s = seconds_now() + kSilenceSeconds;
  return answer;
}

}  // namespace graphlane
