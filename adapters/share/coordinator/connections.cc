#include "adapters/share/coordinator/connections.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <utility>

#include "adapters/share/wire/message_socket.h"
#include "iomgr/base/futex.h"

namespace graphlane::share {
namespace {

constexpr size_t kConnectionsMax = 1024;
// Connections accepted in one step of the loop, so that a flood cannot starve the jobs.
constexpr int kAcceptBatchMax = 64;
// A connection must attach within this time. link.cc waits five times as long for the answer,
// which covers the listener's queue. A job that was held up connects again.
constexpr uint64_t kAttachNs = 2'000'000'000;
// The interval at which a full coordinator looks for free slots.
constexpr uint64_t kRoomIntervalNs = 100'000'000;
// Keys of epoll events that are not from jobs.
constexpr uint64_t kListenerKey = uint64_t{1} << 32;
constexpr uint64_t kEventKey = kListenerKey + 1;

void watch(int epoll, int fd, uint64_t key) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = key}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// For epoll: -1 is without end.
int timeout_ms(uint64_t deadline_ns, uint64_t now_ns) {
  if (deadline_ns == UINT64_MAX) return -1;
  if (deadline_ns <= now_ns) return 0;
  return static_cast<int>(std::min<uint64_t>((deadline_ns - now_ns) / 1'000'000 + 1, INT_MAX));
}

}  // namespace

bool is_ours(uid_t user) { return user == 0 || user == ::geteuid(); }

Outcome<void> Connections::open(Fd listener, int event) {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return os_error(errno, "epoll", "cannot make");
  watch(epoll_.get(), event, kEventKey);
  listener_ = std::move(listener);
  if (listener_) {
    ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
    listen(true);
  }
  return {};
}

// Starts or stops accepting. Without a free slot, connections wait in the listener's queue.
void Connections::listen(bool wanted) {
  if (wanted == listens_ || !listener_) return;
  if (wanted) {
    watch(epoll_.get(), listener_.get(), kListenerKey);
  } else {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  }
  listens_ = wanted;
}

void Connections::accept_all() {
  for (int i = 0; connections_.size() < kConnectionsMax; ++i) {
    if (i == kAcceptBatchMax) return;
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket && errno == EAGAIN) return;
    if (!socket && errno != EINTR && errno != ECONNABORTED) break;  // no descriptors or no memory
    if (socket) add(std::move(socket));
  }
  listen(false);
}

bool Connections::has_slot(uid_t user) const {
  if (is_ours(user)) return true;
  size_t count = 0;
  for (const auto& [id, connection] : connections_) count += connection.user == user;
  return count < kConnectionsMax - connections_.size();
}

void Connections::add(Fd socket) {
  const Result<uid_t> user = peer_user(socket.get());
  if (!user || !has_slot(*user)) return;
  enlarge_buffers(socket.get());
  const JobId id = ++last_id_;
  watch(epoll_.get(), socket.get(), id);
  connections_[id] = {
      .socket = std::move(socket), .user = *user, .attach_until_ns = monotonic_ns() + kAttachNs};
}

const Connections::Connection* Connections::find(JobId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

bool Connections::is_attached(JobId id) const {
  const Connection* const connection = find(id);
  return connection != nullptr && connection->attach_until_ns == UINT64_MAX;
}

std::vector<JobId> Connections::overdue(uint64_t now_ns) const {
  std::vector<JobId> ids;
  for (const auto& [id, connection] : connections_) {
    if (connection.attach_until_ns <= now_ns) ids.push_back(id);
  }
  return ids;
}

uint64_t Connections::next_deadline_ns(uint64_t now_ns) const {
  uint64_t next_ns = UINT64_MAX;
  for (const auto& [id, connection] : connections_) {
    if (connection.attach_until_ns > now_ns) {
      next_ns = std::min(next_ns, connection.attach_until_ns);
    }
  }
  return next_ns;
}

void Connections::wait(uint64_t deadline_ns, const std::function<void(JobId)>& on_message,
                       const std::function<void()>& on_event) {
  const uint64_t now_ns = monotonic_ns();
  if (!listens_ && listener_) deadline_ns = std::min(deadline_ns, now_ns + kRoomIntervalNs);
  epoll_event events[64];
  const int count =
      ::epoll_wait(epoll_.get(), events, std::size(events), timeout_ms(deadline_ns, now_ns));
  listen(true);  // a slot may be free again
  for (int i = 0; i < count; ++i) {
    const uint64_t key = events[i].data.u64;
    if (key == kListenerKey) {
      accept_all();
    } else if (key == kEventKey) {
      on_event();
    } else {
      on_message(static_cast<JobId>(key));
    }
  }
}

}  // namespace graphlane::share
