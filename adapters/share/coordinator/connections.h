// Connections: the sockets of a coordinator's jobs, from their acceptance to their end.
//
// **Slots.** A connection that does not attach in time is cut off. A foreign user (neither root nor
// ours) has at most as many slots as remain free: one such user half of them, two a third each.
//
// Threads: the coordinator's loop.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "adapters/share/schedule/global_table.h"
#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

// Root and our own user have no limits here.
bool is_ours(uid_t user);

class Connections {
 public:
  struct Connection {
    Fd socket;
    uid_t user = 0;
    uint64_t attach_until_ns = 0;  // UINT64_MAX: attached
  };

  // Connects what comes to the listener, if it is given. Also watches `event`.
  Outcome<void> open(Fd listener, int event);
  bool has_listener() const { return static_cast<bool>(listener_); }

  // A new connection, unless its user has no slot.
  void add(Fd socket);
  // Null: it has ended.
  const Connection* find(JobId id) const;
  bool is_attached(JobId id) const;
  void set_attached(JobId id) { connections_.at(id).attach_until_ns = UINT64_MAX; }
  void end(JobId id) { connections_.erase(id); }
  bool empty() const { return connections_.empty(); }

  // Connections that have not attached in time, and when the next one will be.
  std::vector<JobId> overdue(uint64_t now_ns) const;
  uint64_t next_deadline_ns(uint64_t now_ns) const;

  // Waits until the deadline at the latest, and accepts connections. Calls `on_message` for each with
  // a message or an end, and `on_event` for the event.
  void wait(uint64_t deadline_ns, const std::function<void(JobId)>& on_message,
            const std::function<void()>& on_event);

 private:
  void listen(bool wanted);
  void accept_all();
  bool has_slot(uid_t user) const;

  Fd epoll_;
  Fd listener_;
  bool listens_ = false;
  JobId last_id_ = 0;
  std::map<JobId, Connection> connections_;
};

}  // namespace graphlane::share
