#include "fuse/part_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "fuse/striped.h"
#include "iomgr/server_protocol.h"

namespace graphlane {
namespace {

using Clock = std::chrono::steady_clock;

// A client asks at once when it has connected; one that does not is let go.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr size_t kConnectionsMax = 64;
constexpr int kBacklog = 128;

struct Connection {
  Fd fd;
  Clock::time_point deadline;
};

// The descriptor that came with a valid request. (Alignment leaves room for two,
// and whatever came is ours to close.)
Fd receive_request(int connection) {
  ServerRequest request;
  iovec piece{.iov_base = &request, .iov_len = sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t received = ::recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (received < 0) return {};
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
    return {};
  }
  Fd first;
  const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; ++i) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
    Fd owned(fd);
    if (i == 0) first = std::move(owned);
  }
  const bool valid =
      received == sizeof request && request.magic == ServerRequest::kMagic && count == 1;
  return valid ? std::move(first) : Fd();
}

bool may_read(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY;
}

}  // namespace

struct PartServer::Answer {
  ServerReply reply;
  std::shared_ptr<StripedFile> file;  // open for reading; none if reply.error
};

Outcome<std::unique_ptr<PartServer>> PartServer::start(Filesystem& fs, dev_t device) {
  std::unique_ptr<PartServer> server(new PartServer(fs, device));
  server->name_ = fmt::format("graphlane-{}", UuidText(Uuid::random()).view());
  server->listening_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  server->stopping_.reset(::eventfd(0, EFD_CLOEXEC));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;  // abstract: the name begins with a NUL
  static_assert(1 + kServerNameSize <= sizeof address.sun_path);
  std::memcpy(address.sun_path + 1, server->name_.data(), kServerNameSize);
  constexpr socklen_t kLength = offsetof(sockaddr_un, sun_path) + 1 + kServerNameSize;
  if (!server->listening_ || !server->stopping_ ||
      ::bind(server->listening_.get(), reinterpret_cast<sockaddr*>(&address), kLength) != 0 ||
      ::listen(server->listening_.get(), kBacklog) != 0) {
    return os_error(errno, server->name_, "cannot listen");
  }
  server->thread_ = std::thread(&PartServer::run, server.get());
  return server;
}

PartServer::~PartServer() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stopping_.get(), 1);
  thread_.join();
}

void PartServer::run() {
  std::vector<Connection> connections;
  std::vector<pollfd> polled;
  for (;;) {
    const bool room = connections.size() < kConnectionsMax;
    polled = {{stopping_.get(), POLLIN, 0},
              {listening_.get(), static_cast<short>(room ? POLLIN : 0), 0}};
    for (const Connection& c : connections) polled.push_back({c.fd.get(), POLLIN, 0});
    const int timeout_ms = connections.empty() ? -1 : 100;
    if (::poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    const auto now = Clock::now();
    for (size_t i = connections.size(); i-- > 0;) {
      if (polled[2 + i].revents != 0) serve(connections[i].fd.get());
      else if (now < connections[i].deadline) continue;
      connections.erase(connections.begin() + static_cast<ptrdiff_t>(i));
    }
    if (polled[1].revents == 0) continue;
    Fd accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted) connections.push_back({std::move(accepted), now + kPatience});
  }
}

void PartServer::serve(int connection) const {
  const Fd file = receive_request(connection);
  if (!file) return;
  Answer answer = this->answer(file.get());
  std::string directories;
  iovec pieces[] = {{&answer.reply, sizeof answer.reply}, {nullptr, 0}};
  std::array<int, kServerDescriptorsMax> fds;
  uint32_t count = 0;
  if (answer.reply.error == 0 || answer.reply.error == EAGAIN) {
    fds[count++] = fs_.live.generations().fd();
  }
  if (answer.file) {
    for (uint32_t d = 0; d < fs_.volume->device_count(); ++d) {
      fds[count++] = answer.file->parts().buffered(d);
      directories += fs_.volume->devices()[d].root;
      directories += '\0';
    }
    pieces[1] = {directories.data(), directories.size()};
  }
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), count * sizeof(int));
  }
  // A client that has gone, or does not read, gets none.
  (void)::sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

PartServer::Answer PartServer::answer(int file_fd) const {
  const auto refuse = [](int error) {
    Answer answer;
    answer.reply.error = error;
    return answer;
  };
  struct statx seen;
  if (!may_read(file_fd) ||
      ::statx(file_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &seen) != 0) {
    return refuse(EACCES);
  }
  if (makedev(seen.stx_dev_major, seen.stx_dev_minor) != device_) return refuse(EXDEV);
  Inode* inode = fs_.inodes.find(seen.stx_ino);
  if (inode == nullptr) return refuse(ESTALE);
  Answer answer = this->answer(*inode);
  fs_.inodes.forget(inode->nodeid, 1);
  return answer;
}

PartServer::Answer PartServer::answer(Inode& inode) const {
  Answer answer;
  ServerReply& reply = answer.reply;
  reply.error = EIO;
  struct stat st;
  if (inode.control || ::fstat(inode.fd.get(), &st) != 0) return answer;
  const StubView view = inode.stub.look(inode.fd.get(), st);
  if (!view.striped() || !fs_.volume->accept(view.layout, "")) return answer;
  Layout layout = view.layout;
  // The generation comes first: whoever changes the file from here on moves it.
  reply.generation = fs_.live.generations().of(layout.file_id);
  reply.generation_index = generation_index(layout.file_id);
  reply.error = EAGAIN;
  if (const auto live = fs_.live.find(layout.file_id)) {
    if (fs_.live.has_writers(layout.file_id)) return answer;
    layout.logical_size = live->size();
    layout.state = FileState::kClosed;  // as good as, until somebody opens it to write
  }
  if (layout.state != FileState::kClosed) return answer;
  auto file = open_parts_to_read(*fs_.volume, layout, st);
  reply.error = file ? 0 : file.error().code;
  if (!file) return answer;
  reply.device_count = layout.geometry.device_count;
  reply.stub = encode_stub(layout);
  answer.file = std::move(*file);
  return answer;
}

}  // namespace graphlane
