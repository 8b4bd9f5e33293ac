// TicketBook: which process may ask this mount's server about which open file
// (iomgr/server/server_protocol.h, "Authentication").
//
//   ioctl(kTicketIoctl) by a descriptor ──► issue() ──► ticket and secret, to that process
//   the ticket by the server's socket   ──► take()  ──► the inode, once, to the same user
//
// A ticket belongs to one open handle and ends with it, so its inode is the one that was opened.
// Only the user that got the ticket can use it.
//
// Threads: everything is safe from any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <optional>

#include "fuse/inode/inode_table.h"
#include "iomgr/base/mutex.h"
#include "iomgr/server/server_protocol.h"

namespace graphlane::fuse {

struct OpenFile;

class TicketBook {
 public:
  explicit TicketBook(InodeTable& inodes) : inodes_(inodes) {}

  // The file of a ticket. The inode has one more look-up, which the caller gives back.
  struct Shown {
    Inode* inode;
    Uuid secret;
    bool may_read;  // as the handle of the ticket
    bool may_write;
    bool appends;  // O_APPEND
  };

  // Fills in a new ticket for the handle of this inode, and its secret. A user keeps at most
  // kPerUserMax unused tickets, beyond which the oldest goes. At most kUsersMax users keep tickets;
  // beyond that, the tickets of the least recently active user go.
  void issue(OpenFile& handle, Inode& inode, uid_t user, TicketGrant* grant);

  // Uses the ticket up. None: the user has no such ticket.
  std::optional<Shown> take(const Uuid& ticket, uid_t user);

  // Call it before the handle is closed.
  void drop(OpenFile& handle);

 private:
  static constexpr size_t kPerUserMax = 256;
  static constexpr size_t kUsersMax = 4096;
  // A client uses its ticket at once.
  static constexpr std::chrono::seconds kLifetime{30};
  using Clock = std::chrono::steady_clock;

  struct Entry {
    Uuid ticket;
    OpenFile* handle;
    Shown shown;
    Clock::time_point issued;
  };

  void drop_oldest_user() REQUIRES(mu_);
  void erase(std::deque<Entry>& entries, std::deque<Entry>::iterator entry) REQUIRES(mu_);

  InodeTable& inodes_;
  Mutex mu_;
  std::map<uid_t, std::deque<Entry>> by_user_ GUARDED_BY(mu_);  // non-empty; oldest first
};

}  // namespace graphlane::fuse
