// Clients' messages to a server: with descriptors or without, to one that takes tickets and
// to one that is shown files.
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "iomgr/server/file_server.h"
#include "iomgr/server/server_socket.h"
#include "tests/fuzz/target.h"

namespace graphlane::fuzz {
namespace {

// Serves nothing, and checks that only permitted requests arrive.
class Refuser final : public FileServer::Host {
 public:
  explicit Refuser(bool by_tickets) : by_tickets_(by_tickets) {}
  bool takes_tickets() const override { return by_tickets_; }
  bool serves(dev_t) const override { return true; }
  FileServer::Answer answer(const FileServer::Question& question) override {
    require((question.fd < 0) == by_tickets_ && question.connection >= 0 && question.kind != 0);
    return FileServer::refusal(EACCES);
  }

 private:
  const bool by_tickets_;
};

class FuzzedServer {
 public:
  explicit FuzzedServer(bool by_tickets) : host_(by_tickets) {
    const std::string name = "graphlane-" + std::string(UuidText(Uuid::random()).view());
    address_ = ServerAddress::of_mount(name.c_str());
    auto server = FileServer::start(address_.listen(), host_, nullptr);
    require(static_cast<bool>(server));
    server_ = std::move(*server);
  }

  // The server answers, ends the connection, or waits if there was no message. It goes on running.
  void say(Bytes message, size_t fd_count) {
    const Fd connection = address_.connect({.tv_sec = 5, .tv_usec = 0});
    require(static_cast<bool>(connection));
    const Fd shown(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    int fds[3];
    std::fill(std::begin(fds), std::end(fds), shown.get());
    const iovec piece{.iov_base = const_cast<uint8_t*>(message.data()), .iov_len = message.size()};
    if (!send_message(connection.get(), {&piece, 1}, {fds, fd_count})) return;
    char reply[sizeof(ServerReply) + 64];
    ssize_t got = 0;
    do got = ::recv(connection.get(), reply, sizeof reply, 0);
    while (got < 0 && errno == EINTR);
    require(got >= 0 || errno == ECONNRESET || errno == EPIPE);
  }

 private:
  Refuser host_;
  ServerAddress address_ = ServerAddress::of_mount("graphlane-00000000000000000000000000000000");
  std::unique_ptr<FileServer> server_;
};

// The first byte chooses the number of descriptors and the server.
void run_server(Bytes input) {
  if (input.empty()) return;
  static FuzzedServer by_tickets(true), by_files(false);
  FuzzedServer& server = (input[0] & 4) != 0 ? by_tickets : by_files;
  Bytes message = input.subspan(1);
  static constexpr uint32_t kKinds[] = {
      ServerRequest::kMagic, WriteRequest::kMagic,  ShareRequest::kMagic,      MapRequest::kMagic,
      StatsRequest::kMagic,  CountsRequest::kMagic, PassedShareRequest::kMagic};
  ServerRequest request;
  // Some of the messages are whole questions, or no fuzzer would find one.
  if ((input[0] & 8) != 0 && message.size() >= sizeof request - sizeof request.magic) {
    request.magic = kKinds[(input[0] >> 4) % std::size(kKinds)];
    std::copy_n(message.data(), sizeof request - sizeof request.magic,
                reinterpret_cast<uint8_t*>(&request) + sizeof request.magic);
    message = {reinterpret_cast<const uint8_t*>(&request), sizeof request};
  }
  server.say(message, input[0] & 3);
}

constexpr FuzzTarget kServerTargets[] = {{"server", run_server}};

}  // namespace

std::span<const FuzzTarget> server_targets() { return kServerTargets; }

}  // namespace graphlane::fuzz
