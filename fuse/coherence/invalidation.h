// Invalidation: the kernel keeps the pages of a file until it is told that somebody else has
// changed it: another mount of the volume or, of a plain file, anybody on the host.
//
//   looked at   with each look-up and getattr, at each open, and every attr_timeout
//               while it is open
//   ours        what changes while this mount has it open for writing
//
// The kernel offers to look at the mtime itself (AUTO_INVAL_DATA). But it takes this mount's own
// writes for somebody else's, and a page that it drops while what was written to it is on its way
// to us is read back with the bytes of before, which stay. So it is told not to.
//
// Threads: everything is safe from any thread. One of its own looks at what is open.
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

namespace graphlane {

struct Filesystem;

class Invalidation {
 public:
  // A handle of a file whose pages the kernel keeps.
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
    const bool may_map_;  // to write
  };

  explicit Invalidation(Filesystem& fs) : fs_(fs) {}
  ~Invalidation() { stop(); }
  Invalidation(const Invalidation&) = delete;
  Invalidation& operator=(const Invalidation&) = delete;

  // Before the first request.
  void start();
  // No page that the kernel waits for may be left to bring: the mount has ended.
  void stop();

  // A regular file was this one (nil: a plain one) just now, of these attributes. Before the
  // kernel has the answer from which it, or a program, may know that.
  void see(Inode& inode, const Uuid& file_id, const struct stat& st);
  // The same, of the stub of a file that only this mount changes from now on.
  void see_taken(Inode& inode, const Uuid& file_id, int stub_fd);

 private:
  static constexpr auto kIntervalMin = std::chrono::milliseconds(100);
  static constexpr auto kIntervalMax = std::chrono::hours(1);
  // Threads of the mount's that the kernel has wait at a time, for pages that others bring.
  static constexpr uint32_t kDroppingMax = kMountThreadsMin / 2;
  // … and that wait until other threads have dropped some.
  static constexpr uint32_t kWaitingMax = 1;
  static_assert(kDroppingMax + kWaitingMax < kMountThreadsMin);

  bool is_ours(const Inode& inode, const Uuid& file_id);
  void changed(Inode& inode, const Uuid& file_id);
  void drop_pages(const Inode& inode);
  bool will_drop(const Inode& inode) const REQUIRES(mu_);
  // Before somebody may write: what he writes must not be dropped (drop_behind.h).
  void begin_writing(Inode& inode);
  void serve();

  Filesystem& fs_;
  std::chrono::nanoseconds interval_{};  // constant while the thread runs
  std::thread thread_;
  std::atomic<uint32_t> dropping_count_{0};
  std::atomic<uint32_t> waiting_count_{0};

  Mutex mu_;
  CondVar changed_, dropped_;
  // All inodes in them are held.
  std::unordered_map<Inode*, uint32_t> open_ GUARDED_BY(mu_);  // how many handles
  std::vector<Inode*> waiting_ GUARDED_BY(mu_);                // their pages are to be dropped
  std::vector<Inode*> dropping_ GUARDED_BY(mu_);               // … and just are
  std::vector<Inode*> dropping_here_ GUARDED_BY(mu_);          // the same, by who has seen the change
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
