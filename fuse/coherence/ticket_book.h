// TicketBook: which process may ask this mount's server about which open file
// (iomgr/server/server_protocol.h, "Authentication").
//
//   ioctl(kTicketIoctl) by a descriptor ──► issue() ──► ticket and secret, to that process
//   the ticket by the server's socket   ──► take()  ──► the inode, once, to the same user
//
// A ticket is of one open handle, and goes with it, so the inode it names is the one that was open.
// It is of one user: no other user can use it.
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

namespace graphlane {

struct OpenFile;

class TicketBook {
 public:
  explicit TicketBook(InodeTable& inodes) : inodes_(inodes) {}

  // The file that a ticket stands for. The inode has one more look-up, the caller's to give back.
  struct Shown {
    Inode* inode;
    Uuid secret;
    bool may_read;   // by the handle that it was issued to
    bool may_write;
  };

  // The handle is of the inode. Fills the ticket and the secret. A user keeps at most kOfUserMax
  // unused tickets: the oldest goes. At most kUsersMax users keep some: the one that has not used
  // its tickets for longest goes.
  void issue(OpenFile& handle, Inode& inode, uid_t user, TicketGrant* grant);

  // The ticket is used up. None: there is no such ticket of this user.
  std::optional<Shown> take(const Uuid& ticket, uid_t user);

  // Before the handle goes.
  void drop(OpenFile& handle);

 private:
  static constexpr size_t kOfUserMax = 256;
  static constexpr size_t kUsersMax = 4096;
  // A ticket is used at once.
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
  std::map<uid_t, std::deque<Entry>> of_users_ GUARDED_BY(mu_);  // none is empty; oldest first
};

}  // namespace graphlane
