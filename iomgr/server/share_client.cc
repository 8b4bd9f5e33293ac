#include "iomgr/server/share_client.h"

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/sys.h"
#include "iomgr/server/server_socket.h"

namespace graphlane {
namespace {

constexpr int64_t kSilenceSeconds = 60;

// False for the user id that the kernel shows for users unknown to this user namespace.
bool is_known_user(uid_t user) {
  constexpr uid_t kDefault = 65534;
  static uid_t unknown = static_cast<uid_t>(-1);
  if (unknown == static_cast<uid_t>(-1)) {
    char digits[16] = {};
    const Fd file(sys::openat(AT_FDCWD, "/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC));
    const bool told = file && sys::read(file.get(), digits, sizeof digits - 1) > 0;
    unknown = told ? static_cast<uid_t>(std::strtoul(digits, nullptr, 10)) : kDefault;
  }
  return user != unknown;
}

// The volume's socket as an O_PATH descriptor, if its owner may be trusted with the stub's file.
Fd open_trusted_socket(int run_directory, const struct stat& stub) {
  Fd place(sys::openat(run_directory, kServerSocketName, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat server, volume;
  if (!place || sys::fstat(place.get(), &server) != 0 || !S_ISSOCK(server.st_mode) ||
      sys::fstat(run_directory, &volume) != 0) {
    return {};
  }
  const uid_t user = server.st_uid;
  const bool is_trusted = user == 0 || user == static_cast<uid_t>(::syscall(SYS_geteuid)) ||
                          user == stub.st_uid || user == volume.st_uid;
  if (!is_trusted || !is_known_user(user)) return {};
  return place;
}

// Whether the listener is the user that made the socket.
bool is_answered_by(int connection, int place) {
  ucred server;
  struct stat made;
  return find_peer(connection, &server) && sys::fstat(place, &made) == 0 &&
         server.uid == made.st_uid;
}

// To the volume's server, if it may be trusted with this file. Empty otherwise; errno is EAGAIN if the
// server is silent.
Fd connect_to_server(int run_directory, const struct stat& file) {
  errno = 0;
  const Fd place = open_trusted_socket(run_directory, file);
  if (!place) return {};
  Fd connection = ServerAddress::of_file(place.get()).connect(kVolumeServerPatience);
  if (connection && !is_answered_by(connection.get(), place.get())) connection.reset();
  return connection;
}

int64_t share_clock_s() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

}  // namespace

ShareAnswer receive_share_answer(Fd connection) {
  alignas(ServerReply) static char buffer[sizeof(ServerReply)];
  ShareAnswer answer;
  if (!connection) return answer;
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
  if (share_clock_s() < silent_until_s) return {};
  ShareAnswer answer;
  struct stat stub;
  if (sys::fstat(stub_fd, &stub) != 0) return answer;
  Fd connection = connect_to_server(run_directory, stub);
  // A separate open file description: the server can neither move the file offset nor touch the
  // locks of this process.
  const Fd shown = connection ? reopen(stub_fd, O_RDONLY | O_NONBLOCK) : Fd();
  const ServerRequest request{
      .magic = client == 0 ? ShareRequest::kMagic : PassedShareRequest::kMagic, .client = client};
  if (shown && send_question(connection.get(), request, shown.get())) {
    answer = receive_share_answer(std::move(connection));
  }
  if (errno == EAGAIN) silent_until_s = share_clock_s() + kSilenceSeconds;
  return answer;
}

void tell_volume_of_change(int run_directory, int stub_fd) {
  static int64_t silent_until_s = 0;
  if (share_clock_s() < silent_until_s) return;
  struct stat stub;
  if (sys::fstat(stub_fd, &stub) != 0) return;
  const Fd connection = connect_to_server(run_directory, stub);
  const Fd shown = connection ? reopen(stub_fd, O_RDONLY | O_NONBLOCK) : Fd();
  if (shown) (void)send_question(connection.get(), {.magic = ChangeNotice::kMagic}, shown.get());
  if (errno == EAGAIN) silent_until_s = share_clock_s() + kSilenceSeconds;
}

Fd ask_volume_for_counts(int run_directory, int root_fd) {
  struct stat root;
  if (sys::fstat(root_fd, &root) != 0) return {};
  const Fd connection = connect_to_server(run_directory, root);
  if (!connection || !send_question(connection.get(), {.magic = CountsRequest::kMagic}, root_fd)) {
    return {};
  }
  alignas(ServerReply) static char buffer[sizeof(ServerReply)];
  ServerMessage message;
  receive_message(connection.get(), buffer, sizeof buffer, &message);
  const ServerReply* const reply = reply_in(message, buffer);
  const bool has_page = reply != nullptr && reply->error == 0 && message.fd_count == 1;
  return has_page ? Fd(message.take(0)) : Fd();
}

}  // namespace graphlane
