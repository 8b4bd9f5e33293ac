// Invalidation: drops the kernel's pages of a file that was changed outside this mount: by another
// mount of the volume or, for a plain file, by any process on the host.
//
//   checked     at each look-up and getattr, at each open, and every attr_timeout while it is open
//   dropped     at once if a handle may read the pages, else before the reply to the next open
//   ignored     changes while this mount has the file open for writing
//
// A drop makes the kernel discard the attributes of every reply that is under way, and the
// permission check that asked for them then uses the old mode. So a look-up or getattr of a file
// that is not open drops nothing.
//
// The kernel can compare the mtime itself (AUTO_INVAL_DATA), but it takes this mount's own writes
// for foreign ones. If it drops a page while a write of that page is in flight, it reads back the
// old bytes, which stay. So that feature is switched off.
//
// Threads: everything is safe from any thread. One of its own checks open files.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fuse/inode/inode_table.h"
#include "fuse/mount/mount.h"
#include "iomgr/base/mutex.h"
#include "iomgr/base/uuid.h"

namespace graphlane::fuse {

struct Filesystem;

class Invalidation {
 public:
  // A handle that leaves pages of its file in the kernel.
  class Member {
   public:
    Member(Invalidation& changes, Inode& inode, int access_mode);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    Inode& inode() const { return inode_; }

   private:
    Invalidation& changes_;
    Inode& inode_;
    const bool writes_;
    const bool may_map_;  // by a shared writable mapping
  };

  explicit Invalidation(Filesystem& fs) : fs_(fs) {}
  ~Invalidation() { stop(); }
  Invalidation(const Invalidation&) = delete;
  Invalidation& operator=(const Invalidation&) = delete;

  // Call it before the first request.
  void start();
  // Call it after the mount has ended: no request for a page may be outstanding.
  void stop();

  // Compares the attributes of a regular file, read just now, with the last ones. If they differ,
  // no read that begins after this call gets the old pages. `file_id` is nil for a plain file. Must
  // precede the reply, or a program may learn of the change and still read old pages.
  void see(Inode& inode, const Uuid& file_id, const struct stat& st);
  // As see(), for the stub of a file that only this mount changes from now on.
  void see_taken(Inode& inode, const Uuid& file_id, int stub_fd);

 private:
  static constexpr auto kIntervalMin = std::chrono::milliseconds(100);
  static constexpr auto kIntervalMax = std::chrono::hours(1);
  // Worker threads that may drop pages at a time. The kernel makes each wait for pages that another
  // worker brings.
  static constexpr uint32_t kDroppingMax = kMountThreadsMin / 2;
  // Worker threads that may wait for another thread's drop.
  static constexpr uint32_t kWaitingMax = 1;
  static_assert(kDroppingMax + kWaitingMax < kMountThreadsMin);

  bool is_ours(const Inode& inode, const Uuid& file_id);
  void changed(Inode& inode, const Uuid& file_id);
  bool defers_drop(Inode& inode);
  void drop(Inode& inode);
  void drop_pages(const Inode& inode);
  bool will_drop(const Inode& inode) const REQUIRES(mu_);
  // Call it before the first write is possible: written pages must not be dropped (drop_behind.h).
  void begin_writing(Inode& inode);
  void serve();

  Filesystem& fs_;
  std::chrono::nanoseconds interval_{};  // constant while the thread runs
  std::thread thread_;
  std::atomic<uint32_t> dropping_count_{0};
  std::atomic<uint32_t> waiting_count_{0};

  Mutex mu_;
  CondVar changed_, dropped_;
  // They hold all their inodes.
  std::unordered_map<Inode*, uint32_t> open_ GUARDED_BY(mu_);  // handle counts
  std::vector<Inode*> waiting_ GUARDED_BY(mu_);                // queued for a drop
  std::vector<Inode*> dropping_ GUARDED_BY(mu_);               // being dropped by serve()
  std::vector<Inode*> dropping_here_ GUARDED_BY(mu_);          // being dropped by workers
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane::fuse
