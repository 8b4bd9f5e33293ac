#include "fuse/part_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <algorithm>
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
constexpr auto kTidyInterval = std::chrono::seconds(1);
constexpr size_t kConnectionsMax = 128;
constexpr size_t kLinksMax = 64;
constexpr int kBacklog = 128;

struct Connection {
  Fd fd;
  Clock::time_point deadline;
  std::unique_ptr<WriteLink> link = nullptr;  // who has one stays
};

// The descriptor that came with a valid request. (Alignment leaves room for two,
// and whatever came is ours to close.)
Fd receive_request(int connection, uint32_t* magic) {
  ServerRequest request;
  static_assert(sizeof request == sizeof(WriteRequest) && sizeof request == sizeof(ShareRequest));
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
  *magic = request.magic;
  const bool known = *magic == ServerRequest::kMagic || *magic == WriteRequest::kMagic ||
                     *magic == ShareRequest::kMagic;
  return received == sizeof request && known && count == 1 ? std::move(first) : Fd();
}

// Whether the descriptor is open for what its holder wants. O_APPEND leaves the
// place to the kernel, which we would not tell of our writes in time.
bool may(int fd, uint32_t question) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0) return false;
  if (question != WriteRequest::kMagic) return (flags & O_ACCMODE) != O_WRONLY;
  return (flags & O_ACCMODE) != O_RDONLY && (flags & O_APPEND) == 0;
}

// Who has connected; 0: unknown.
pid_t peer_of(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
}

// A message of a writer's. False: it has gone, or talks nonsense.
bool serve_link(int connection, WriteLink& link) {
  alignas(WriteBegin) std::byte message[sizeof(WriteBegin)];
  const ssize_t received = ::recv(connection, message, sizeof message, MSG_DONTWAIT);
  WriteReply reply;
  WriteBegin begin;
  WriteEnd end;
  if (received == sizeof begin) {
    std::memcpy(&begin, message, sizeof begin);
    if (begin.magic != WriteBegin::kMagic) return false;
    reply = link.begin(begin);
  } else if (received == sizeof end) {
    std::memcpy(&end, message, sizeof end);
    if (end.magic != WriteEnd::kMagic) return false;
    reply = link.end(end);
  } else {
    return received < 0 && (errno == EAGAIN || errno == EINTR);
  }
  return ::send(connection, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof reply;
}

}  // namespace

struct PartServer::Answer {
  ServerReply reply;
  std::shared_ptr<StripedFile> file;  // open for reading; none if reply.error
  std::unique_ptr<WriteLink> link;    // or this
  std::unique_ptr<SharedScan> scan;   // or this
  const PartFiles* parts() const {
    return link ? &link->live().writable().parts() : file ? &file->parts() : nullptr;
  }
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
  auto tidied = Clock::now();
  for (;;) {
    const bool room = connections.size() < kConnectionsMax;
    polled = {{stopping_.get(), POLLIN, 0},
              {listening_.get(), static_cast<short>(room ? POLLIN : 0), 0}};
    for (const Connection& c : connections) polled.push_back({c.fd.get(), POLLIN, 0});
    const auto links = static_cast<size_t>(
        std::count_if(connections.begin(), connections.end(), [](const auto& c) { return !!c.link; }));
    const bool shares = fs_.shared && (!share_links_.empty() || fs_.shared->stats().resident_bytes > 0);
    const int idle_ms = shares ? 1000 : -1;
    const int timeout_ms = connections.size() == links ? idle_ms : 100;
    if (::poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    const auto now = Clock::now();
    if (now - tidied >= kTidyInterval) {
      tidy();
      tidied = now;
    }
    for (size_t i = connections.size(); i-- > 0;) {
      Connection& c = connections[i];
      const bool said = polled[2 + i].revents != 0;
      if (c.link) {
        if (!said || serve_link(c.fd.get(), *c.link)) continue;
      } else if (said) {
        c.link = serve(c.fd, links < kLinksMax);
        if (c.link) continue;
      } else if (now < c.deadline) {
        continue;
      }
      connections.erase(connections.begin() + static_cast<ptrdiff_t>(i));
    }
    if (polled[1].revents == 0) continue;
    Fd accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted) connections.push_back({std::move(accepted), now + kPatience});
  }
}

void PartServer::tidy() {
  share_links_.tidy();
  if (!fs_.shared) return;
  fs_.shared->tidy();
  // One budget: what is shared is not there for who reads by the mount. (What is left of
  // memory both look at by themselves.)
  const uint64_t budget = fs_.options.cache.budget_bytes;
  if (budget == ExtentCacheOptions::kAutoBudget) return;
  fs_.extents.set_budget(budget - std::min(budget, fs_.shared->stats().resident_bytes));
}

// A link to stay for, or none; a connection that shares goes to where those are.
std::unique_ptr<WriteLink> PartServer::serve(Fd& connection, bool link_possible) {
  uint32_t question = 0;
  Fd file = receive_request(connection.get(), &question);
  if (!file) return nullptr;
  Answer answer = this->answer(file.get(), question, link_possible, peer_of(connection.get()));
  file.reset();  // who has its answer may close its own and unmount
  std::string directories;
  iovec pieces[] = {{&answer.reply, sizeof answer.reply}, {nullptr, 0}};
  std::array<int, kServerDescriptorsMax> fds;
  uint32_t count = 0;
  if (answer.reply.error == 0 || answer.reply.error == EAGAIN) {
    fds[count++] = fs_.live.generations().fd();
  }
  if (const PartFiles* parts = answer.parts()) {
    for (uint32_t d = 0; d < fs_.volume->device_count(); ++d) {
      fds[count++] = parts->buffered(d);
      directories += fs_.volume->devices()[d].root;
      directories += '\0';
    }
    pieces[1] = {directories.data(), directories.size()};
  }
  if (answer.scan) fds[count++] = answer.scan->image_fd();
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
  if (::sendmsg(connection.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return nullptr;
  if (answer.scan) {
    const int flags = ::fcntl(connection.get(), F_GETFL);
    (void)::fcntl(connection.get(), F_SETFL, flags & ~O_NONBLOCK);  // its thread waits
    share_links_.add(std::move(connection), std::move(answer.scan));
  }
  return std::move(answer.link);
}

PartServer::Answer PartServer::answer(int file_fd, uint32_t question, bool link_possible,
                                      pid_t process) const {
  const auto refuse = [](int error) {
    Answer answer;
    answer.reply.error = error;
    return answer;
  };
  struct statx seen;
  if (!may(file_fd, question) ||
      ::statx(file_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &seen) != 0) {
    return refuse(EACCES);
  }
  if (makedev(seen.stx_dev_major, seen.stx_dev_minor) != device_) return refuse(EXDEV);
  Inode* inode = fs_.inodes.find(seen.stx_ino);
  if (inode == nullptr) return refuse(ESTALE);
  if (question == WriteRequest::kMagic) {
    Answer answer = link_possible ? answer_writer(*inode) : refuse(EMFILE);
    if (!answer.link) fs_.inodes.forget(inode->nodeid, 1);
    return answer;
  }
  Answer answer = question == ShareRequest::kMagic ? answer_sharer(*inode, process)
                                                   : answer_reader(*inode);
  fs_.inodes.forget(inode->nodeid, 1);
  return answer;
}

std::optional<Layout> PartServer::layout_of(Inode& inode, struct stat* st) const {
  const Result<HostPath> path = fs_.inodes.path(inode);
  if (!path || inode.control || ::fstat(path->get(), st) != 0) return std::nullopt;
  const StubView view = inode.stub.look(path->get(), *st);
  if (!view.striped() || !fs_.volume->accept(view.layout, "")) return std::nullopt;
  return view.layout;
}

PartServer::Answer PartServer::answer_writer(Inode& inode) const {
  Answer answer;
  answer.reply.error = EINVAL;
  struct stat st;
  const std::optional<Layout> layout = layout_of(inode, &st);
  if (!layout) return answer;
  answer.link = WriteLink::open(fs_, inode, *layout);
  if (!answer.link) return answer;
  answer.reply.error = 0;
  answer.reply.generation_index = generation_index(layout->file_id);
  answer.reply.device_count = layout->geometry.device_count;
  answer.reply.stub = encode_stub(*layout);
  return answer;
}

PartServer::Answer PartServer::answer_reader(Inode& inode, struct stat* stub) const {
  Answer answer;
  ServerReply& reply = answer.reply;
  reply.error = EIO;
  struct stat st;
  std::optional<Layout> found = layout_of(inode, &st);
  if (!found) return answer;
  if (stub != nullptr) *stub = st;
  Layout& layout = *found;
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

// As for a reader, but for the parts, which stay here.
PartServer::Answer PartServer::answer_sharer(Inode& inode, pid_t process) const {
  struct stat stub;
  Answer answer = answer_reader(inode, &stub);
  if (answer.reply.error != 0) return answer;
  const auto refuse = [&answer](int error) {
    answer.file.reset();
    answer.reply.error = error;
  };
  if (!fs_.shared || !share_links_.has_room() || process == 0) return refuse(EMFILE), std::move(answer);
  const SharedCache::Content content{
      .generation = answer.reply.generation,
      .time_ns = stub.st_ctim.tv_sec * 1'000'000'000 + stub.st_ctim.tv_nsec};
  auto scan = fs_.shared->begin(answer.file, content, process);
  if (!scan) return refuse(scan.error().code), std::move(answer);
  answer.scan = std::move(*scan);
  answer.file.reset();
  return answer;
}

}  // namespace graphlane
