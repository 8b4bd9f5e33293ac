#include "iomgr/file_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <new>

#include "iomgr/base/mutex.h"
#include "iomgr/server_socket.h"

namespace graphlane {
namespace {

using Clock = std::chrono::steady_clock;

// A client asks at once when it has connected; one that does not is let go.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kTidyInterval = std::chrono::seconds(1);
constexpr size_t kConnectionsMax = 128;
constexpr size_t kLinksMax = 64;

struct Connection {
  Fd fd;
  Clock::time_point deadline;
  std::unique_ptr<FileServer::Link> link = nullptr;  // who has one stays
};

bool is_known(uint32_t question) {
  static constexpr std::array<uint32_t, 5> kQuestions = {
      ServerRequest::kMagic, WriteRequest::kMagic, ShareRequest::kMagic, MapRequest::kMagic,
      StatsRequest::kMagic};
  return std::find(kQuestions.begin(), kQuestions.end(), question) != kQuestions.end();
}

// 0: cannot be told.
dev_t device_of(int fd) {
  struct statx seen;
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &seen) != 0) return 0;
  return makedev(seen.stx_dev_major, seen.stx_dev_minor);
}

// Of a connection, who has made it.
uid_t user_of(int connection) {
  ucred peer = {.pid = 0, .uid = static_cast<uid_t>(-1), .gid = 0};
  (void)find_peer(connection, &peer);
  return peer.uid;
}

bool send_answer(int connection, FileServer::Answer& answer) {
  const iovec pieces[] = {{&answer.reply, sizeof answer.reply},
                          {answer.text.data(), answer.text.size()}};
  return send_message(connection, pieces, answer.fds);
}

}  // namespace

// Closes what strangers have shown, for as long as that takes: the threads outlive the server.
// Whom too many of them wait for is not listened to.
class FileServer::Strangers : public std::enable_shared_from_this<Strangers> {
 public:
  bool may_ask(uid_t user) {
    const MutexLock lock(mu_);
    const auto found = closing_.find(user);
    return closing_count_ < kClosingMax && (found == closing_.end() || found->second < kOfUserMax);
  }

  void close(uid_t user, std::vector<int> fds) {
    {
      const MutexLock lock(mu_);
      waiting_.push_back({user, std::move(fds)});
      closing_[user] += 1;
      closing_count_ += 1;
    }
    try {
      std::thread([self = shared_from_this()] { self->close_waiting(); }).detach();
    } catch (...) {  // no more threads: the next one's closes these, too
    }
  }

 private:
  static constexpr size_t kOfUserMax = 4;
  static constexpr size_t kClosingMax = 64;

  struct Shown {
    uid_t user;
    std::vector<int> fds;
  };

  void close_waiting() {
    MutexLock lock(mu_);
    while (!waiting_.empty()) {
      const Shown shown = std::move(waiting_.back());
      waiting_.pop_back();
      mu_.unlock();
      for (const int fd : shown.fds) sys::close(fd);
      mu_.lock();
      closing_count_ -= 1;
      if (--closing_[shown.user] == 0) closing_.erase(shown.user);
    }
  }

  Mutex mu_;
  std::vector<Shown> waiting_ GUARDED_BY(mu_);
  std::map<uid_t, size_t> closing_ GUARDED_BY(mu_);
  size_t closing_count_ GUARDED_BY(mu_) = 0;
};

bool is_readable(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY;
}

FileServer::Answer FileServer::refusal(int error) {
  Answer answer;
  answer.reply.error = error;
  return answer;
}

FileServer::FileServer(Fd listening, Host& host, SharedCache* shared)
    : listening_(std::move(listening)),
      host_(host),
      shared_(shared),
      stopping_(::eventfd(0, EFD_CLOEXEC)),
      strangers_(std::make_shared<Strangers>()) {}

Outcome<std::unique_ptr<FileServer>> FileServer::start(Fd listening, Host& host,
                                                       SharedCache* shared) {
  std::unique_ptr<FileServer> server(new FileServer(std::move(listening), host, shared));
  if (!server->stopping_) return os_error(errno, "the server", "cannot start");
  server->thread_ = std::thread(&FileServer::run, server.get());
  return server;
}

FileServer::~FileServer() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stopping_.get(), 1);
  thread_.join();
}

void FileServer::run() {
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
    const bool shares =
        shared_ != nullptr && (!share_links_.empty() || shared_->stats().resident_bytes > 0);
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
        if (!said || c.link->serve(c.fd.get())) continue;
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

void FileServer::tidy() {
  share_links_.tidy();
  if (shared_ == nullptr) return;
  shared_->tidy();
  host_.tidy();
}

Result<Fd> FileServer::receive_request(int connection, PassedShareRequest* request) {
  static_assert(sizeof(ServerRequest) == sizeof(WriteRequest) &&
                sizeof(ServerRequest) == sizeof(ShareRequest));
  const uid_t user = user_of(connection);
  if (!strangers_->may_ask(user)) return Errno{EBUSY};
  ServerMessage message;
  receive_message(connection, request, sizeof *request, &message);
  const bool passed_on = message.length_bytes == sizeof *request &&
                         request->magic == PassedShareRequest::kMagic && request->client != 0;
  const bool own = message.length_bytes == sizeof(ServerRequest) && is_known(request->magic);
  const bool is_valid = (passed_on || own) && message.fd_count == 1;
  std::vector<int> strange;
  for (uint32_t i = 0; i < message.fd_count; ++i) {
    const dev_t device = device_of(message.fds[i]);
    if (device == 0 || !host_.serves(device)) strange.push_back(message.take(i));
  }
  const bool has_strange = !strange.empty();
  if (has_strange) strangers_->close(user, std::move(strange));
  if (!is_valid) return Errno{EINVAL};
  return !has_strange ? Result<Fd>(Fd(message.take(0))) : Errno{EXDEV};
}

// A link to stay for, or none; a connection that shares goes to where those are.
std::unique_ptr<FileServer::Link> FileServer::serve(Fd& connection, bool room_for_link) {
  Answer answer;
  std::unique_ptr<SharedScan> scan;
  try {
    PassedShareRequest request;
    Result<Fd> file = receive_request(connection.get(), &request);
    if (!file && file.error().code != EXDEV) return nullptr;
    answer = file ? answer_to(request, std::move(*file), connection.get(), room_for_link, &scan)
                  : refusal(EXDEV);
  } catch (const std::bad_alloc&) {
    answer = refusal(ENOMEM);
  }
  if (!send_answer(connection.get(), answer)) return nullptr;
  if (scan) {
    const int flags = ::fcntl(connection.get(), F_GETFL);
    (void)::fcntl(connection.get(), F_SETFL, flags & ~O_NONBLOCK);  // its thread waits
    share_links_.add(std::move(connection), std::move(scan));
  }
  return std::move(answer.link);
}

// The descriptor is closed before it is answered: who has his answer may close his own and unmount.
FileServer::Answer FileServer::answer_to(const PassedShareRequest& request, Fd file, int connection,
                                         bool room_for_link, std::unique_ptr<SharedScan>* scan) {
  const bool passed_on = request.magic == PassedShareRequest::kMagic;
  ucred peer = {};
  (void)find_peer(connection, &peer);
  const SharingProcess process{.pid = peer.pid, .client = passed_on ? request.client : 0};
  Answer answer = host_.answer({.fd = file.get(),
                                .kind = passed_on ? ShareRequest::kMagic : request.magic,
                                .process = process,
                                .room_for_link = room_for_link});
  if (answer.passed_on.connection) {
    answer.fds = {answer.passed_on.frames.get(), answer.passed_on.connection.get()};
  } else if ((passed_on || request.magic == ShareRequest::kMagic) && answer.reply.error == 0) {
    auto begun = begin_scan(answer, process);
    if (!begun) return refusal(begun.error().code);
    answer.fds.push_back((*begun)->frames_fd());
    *scan = std::move(*begun);
  }
  return answer;
}

Result<std::unique_ptr<SharedScan>> FileServer::begin_scan(const Answer& answer,
                                                           const SharingProcess& process) {
  const bool known = process.pid != 0;
  if (shared_ == nullptr || !share_links_.has_room() || !known) return Errno{EMFILE};
  return shared_->begin(answer.file, answer.content, process);
}

}  // namespace graphlane
