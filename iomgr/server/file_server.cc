#include "iomgr/server/file_server.h"

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
#include "iomgr/server/server_socket.h"

namespace graphlane {
namespace {

using Clock = std::chrono::steady_clock;

// A client must send its question at once after it connects.
constexpr auto kSilencePatience = std::chrono::seconds(1);
constexpr auto kTidyInterval = std::chrono::seconds(1);
constexpr size_t kSilentMax = 128;
constexpr size_t kAcceptMax = 256;  // at a time
constexpr size_t kWriteLinksMax = 128;
// Messages of one user that are answered before the other users' turn.
constexpr size_t kTurnMax = 4;
constexpr int kSilencePollMs = 100;
// The pause before the server accepts again after it ran out of descriptors.
constexpr int kShortageMs = 20;

bool is_known_question(uint32_t question) {
  static constexpr std::array<uint32_t, 7> kQuestions = {
      ServerRequest::kMagic, WriteRequest::kMagic,  ShareRequest::kMagic, MapRequest::kMagic,
      StatsRequest::kMagic,  CountsRequest::kMagic, ChangeNotice::kMagic};
  return std::find(kQuestions.begin(), kQuestions.end(), question) != kQuestions.end();
}

// The device of the shown file; 0: unknown.
dev_t shown_device(int fd) {
  struct statx seen;
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &seen) != 0) return 0;
  return makedev(seen.stx_dev_major, seen.stx_dev_minor);
}

// The user that made a connection.
uid_t connected_user(int connection) {
  ucred peer = {.pid = 0, .uid = static_cast<uid_t>(-1), .gid = 0};
  (void)find_peer(connection, &peer);
  return peer.uid;
}

bool send_answer(int connection, FileServer::Answer& answer) {
  const iovec pieces[] = {{&answer.reply, sizeof answer.reply},
                          {answer.text.data(), answer.text.size()}};
  return send_message(connection, pieces, answer.fds);
}

// Whether this user may have one more: at most half of what the others leave.
bool has_fair_share(size_t of_user, size_t total, size_t most) {
  return total < most && of_user < most - total;
}

}  // namespace

struct FileServer::Connection {
  Fd fd;
  uid_t user;
  Clock::time_point deadline;
  std::unique_ptr<Link> link = nullptr;  // set: the connection stays
  bool said = false;                     // a message can be received
  bool ended = false;
};

// Closes descriptors of foreign files, however long that takes: the threads outlive the server.
// It serves no user with too many descriptors waiting to be closed.
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
    } catch (...) {  // no more threads: the next descriptor's thread closes these, too
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
  auto tidied = Clock::now();
  while (wait()) {
    if (Clock::now() - tidied >= kTidyInterval) {
      tidy();
      tidied = Clock::now();
    }
    accept_all();
    serve_in_turn();
    drop_silent();
  }
}

bool FileServer::wait() {
  std::vector<pollfd> polled = {{stopping_.get(), POLLIN, 0},
                                {listening_.get(), static_cast<short>(accepts_ ? POLLIN : 0), 0}};
  bool has_silent = false, has_more = false;
  for (const Connection& c : connections_) {
    polled.push_back({c.fd.get(), POLLIN, 0});
    has_silent = has_silent || !c.link;
    has_more = has_more || c.said;  // a message waits for its turn
  }
  const bool shares =
      shared_ != nullptr && (!share_links_.empty() || shared_->stats().resident_bytes > 0);
  const int idle_ms = shares ? 1000 : -1;
  const int timeout_ms = has_more     ? 0
                         : !accepts_  ? kShortageMs
                         : has_silent ? kSilencePollMs
                                      : idle_ms;
  if (::poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR) return false;
  for (size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].said = polled[2 + i].revents != 0;
  }
  accepts_ = true;
  return polled[0].revents == 0;
}

// Accepts all at once, because a client that floods the server refills the socket's queue as
// fast as it is emptied. Most clients have sent their question already.
void FileServer::accept_all() {
  for (size_t i = 0; i < kAcceptMax; ++i) {
    Fd accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted) {
      accepts_ = errno != EMFILE && errno != ENFILE && errno != ENOMEM;
      return;
    }
    const uid_t user = connected_user(accepted.get());
    pollfd said{accepted.get(), POLLIN, 0};
    const bool has_said = ::poll(&said, 1, 0) > 0;
    connections_.push_back({.fd = std::move(accepted),
                            .user = user,
                            .deadline = Clock::now() + kSilencePatience,
                            .said = has_said});
  }
}

void FileServer::serve_in_turn() {
  std::map<uid_t, size_t> served;
  for (Connection& c : connections_) {
    if (!c.said || served[c.user] == kTurnMax) continue;
    served[c.user] += 1;
    c.said = false;
    c.ended = c.link ? !c.link->serve(c.fd.get()) : !serve(c);
  }
  std::erase_if(connections_, [](const Connection& c) { return c.ended; });
}

// A connection with a waiting message is not silent.
void FileServer::drop_silent() {
  const auto now = Clock::now();
  const auto is_silent = [](const Connection& c) { return !c.link && !c.said; };
  std::map<uid_t, size_t> counts;
  size_t total = 0;
  for (Connection& c : connections_) {
    if (!is_silent(c)) continue;
    c.ended = now >= c.deadline;
    if (c.ended) continue;
    counts[c.user] += 1;
    total += 1;
  }
  // Without free descriptors, keeps half of them.
  const size_t most = accepts_ ? kSilentMax : total / 2;
  while (total > most) {
    const auto user =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    // Closes as many as this user has more than the user with the next most.
    size_t next = 0;
    for (const auto& [other, count] : counts) {
      if (other != user->first) next = std::max(next, count);
    }
    size_t to_go = std::min(total - most, std::max<size_t>(1, user->second - next));
    for (Connection& c : connections_) {
      if (to_go == 0) break;
      if (c.ended || c.user != user->first || !is_silent(c)) continue;
      c.ended = true;
      to_go -= 1;
      user->second -= 1;
      total -= 1;
    }
  }
  std::erase_if(connections_, [](const Connection& c) { return c.ended; });
}

bool FileServer::has_room_for_link(uid_t user) const {
  size_t of_user = 0, total = 0;
  for (const Connection& c : connections_) {
    if (!c.link) continue;
    total += 1;
    of_user += c.user == user ? 1 : 0;
  }
  return has_fair_share(of_user, total, kWriteLinksMax);
}

void FileServer::tidy() {
  share_links_.tidy();
  if (shared_ == nullptr) return;
  shared_->tidy();
  host_.tidy();
}

Result<Fd> FileServer::receive_request(const Connection& connection, ServerRequest* request) {
  const bool by_ticket = host_.takes_tickets();
  if (!strangers_->may_ask(connection.user)) return Errno{EBUSY};
  ServerMessage message;
  receive_message(connection.fd.get(), request, sizeof *request, &message);
  const bool passed_on =
      request->magic == PassedShareRequest::kMagic && request->client != 0 && !by_ticket;
  const bool is_valid = message.length_bytes == sizeof *request &&
                        (passed_on || is_known_question(request->magic)) &&
                        message.fd_count == (by_ticket ? 0 : 1);
  std::vector<int> strange;
  for (uint32_t i = 0; i < message.fd_count; ++i) {
    const dev_t device = by_ticket ? 0 : shown_device(message.fds[i]);
    if (device == 0 || !host_.serves(device)) strange.push_back(message.take(i));
  }
  const bool has_strange = !strange.empty();
  if (has_strange) strangers_->close(connection.user, std::move(strange));
  if (!is_valid) return Errno{EINVAL};
  if (by_ticket) return Fd();
  return !has_strange ? Result<Fd>(Fd(message.take(0))) : Errno{EXDEV};
}

// Answers one question. A connection that shares moves to a thread of share_links.h.
bool FileServer::serve(Connection& connection) {
  Answer answer;
  std::unique_ptr<SharedScan> scan;
  try {
    ServerRequest request;
    Result<Fd> file = receive_request(connection, &request);
    if (!file && file.error().code != EXDEV) return false;
    answer = file ? answer_to(request, std::move(*file), connection, &scan) : refusal(EXDEV);
  } catch (const std::bad_alloc&) {
    answer = refusal(ENOMEM);
  }
  if (!send_answer(connection.fd.get(), answer)) return false;
  if (scan) {
    const int flags = ::fcntl(connection.fd.get(), F_GETFL);
    (void)::fcntl(connection.fd.get(), F_SETFL, flags & ~O_NONBLOCK);  // its thread waits
    share_links_.add(std::move(connection.fd), std::move(scan), connection.user);
  }
  connection.link = std::move(answer.link);
  return connection.link != nullptr;
}

// Must close the descriptor before it answers, because a client with an answer may close its
// own descriptor and unmount.
FileServer::Answer FileServer::answer_to(const ServerRequest& request, Fd file,
                                         const Connection& connection,
                                         std::unique_ptr<SharedScan>* scan) {
  const bool passed_on = request.magic == PassedShareRequest::kMagic;
  ucred peer = {};
  (void)find_peer(connection.fd.get(), &peer);
  const SharingProcess process{.pid = peer.pid, .client = passed_on ? request.client : 0};
  Answer answer = host_.answer({.fd = file.get(),
                                .ticket = request.ticket,
                                .kind = passed_on ? ShareRequest::kMagic : request.magic,
                                .user = connection.user,
                                .connection = connection.fd.get(),
                                .process = process,
                                .room_for_link = has_room_for_link(connection.user)});
  if (answer.passed_on.connection) {
    answer.fds = {answer.passed_on.frames.get(), answer.passed_on.connection.get()};
  } else if ((passed_on || request.magic == ShareRequest::kMagic) && answer.reply.error == 0) {
    auto begun = begin_scan(answer, connection, process);
    if (!begun) return refusal(begun.error().code);
    answer.fds.push_back((*begun)->frames_fd());
    *scan = std::move(*begun);
  }
  return answer;
}

Result<std::unique_ptr<SharedScan>> FileServer::begin_scan(const Answer& answer,
                                                           const Connection& connection,
                                                           const SharingProcess& process) {
  const bool known = process.pid != 0;
  if (shared_ == nullptr || !share_links_.has_room(connection.user) || !known) return Errno{EMFILE};
  return shared_->begin(answer.file, answer.content, process);
}

void send_proof(int connection, const Uuid& secret) {
  ServerProof proof{.secret = secret};
  const iovec piece{.iov_base = &proof, .iov_len = sizeof proof};
  (void)send_message(connection, {&piece, 1}, {});
}

}  // namespace graphlane
