// InodeTable: the files that the kernel knows, keyed by (st_dev, st_ino).
//
//   kernel's nodeid  ──►  Inode  ──►  O_PATH descriptor of the host's file
//                           └───────► or its handle, opened on demand
//
// If the host's handles fit (host_handles.h), the nodeid is the handle: it stays valid for ever,
// and the kernel may use it again after it has forgotten it. Else it is a number that no other file
// had.
//
// An Inode lives as long as the kernel holds a look-up of it. Its descriptor keeps the host's inode
// number from being reused meanwhile, so st_ino can be the host's. On another filesystem that is
// mounted in the volume (or a subvolume) the same numbers are other files, so st_ino is the nodeid.
//
// The kernel remembers more files than this process may have descriptors. When half of them are
// used, new inodes with a handle get no descriptor. A handle tells a file from a later one of the
// same number, but does not keep a file that loses its last name. So keep() must precede the
// removal.
//
// Threads: everything is safe from any thread.
// Invariant: an Inode is in the table iff lookup_count > 0; the root always is.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "fuse/inode/host_handles.h"
#include "fuse/inode/passthrough.h"
#include "fuse/inode/read_sizes.h"
#include "fuse/inode/stub_cache.h"
#include "fuse/ops/fuse_api.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/mutex.h"

namespace graphlane::fuse {

struct InodeKey {
  dev_t device = 0;
  ino_t number = 0;
  friend bool operator==(const InodeKey&, const InodeKey&) = default;
};

struct InodeKeyHash {
  size_t operator()(const InodeKey& key) const {
    return std::hash<uint64_t>{}(key.number * 0x9e3779b97f4a7c15u ^ key.device);
  }
};

// An O_PATH descriptor of an inode's file: the inode's own, or one opened for the lifetime of this
// object.
class HostPath {
 public:
  explicit HostPath(int own) : fd_(own) {}
  explicit HostPath(Fd opened) : opened_(std::move(opened)), fd_(opened_.get()) {}
  int get() const { return fd_; }

 private:
  Fd opened_;
  int fd_;
};

struct Inode {
  // Constant after construction.
  InodeKey key;
  fuse_ino_t nodeid = FUSE_ROOT_ID;
  bool control = false;  // .graphlane, or below it: read-only

  StubCache stub;
  Passthrough passthrough;                // of a plain file
  std::atomic<uint32_t> handle_count{0};  // open in the kernel
  std::atomic<uint32_t> writer_count{0};  // of them, writable ones that are not passed through
  std::atomic<uint32_t> mapper_count{0};  // of these, ones that allow a shared writable mapping
  // Handles of a striped file that are open for writing only.
  std::atomic<uint32_t> write_only_count{0};
  // A preloaded program may be extending the file without the kernel (write_link.h), or has done so
  // and is still connected: the kernel's size of it may be too small.
  std::atomic<bool> is_appended{false};
  std::atomic<bool> was_appended{false};  // at any time
  // Requests of the kernel beside which no program begins to do so.
  std::atomic<uint32_t> changes_under_way{0};
  // The kernel has pages from before a foreign change; the next handle drops them (invalidation.h).
  std::atomic<bool> pages_are_stale{false};
  LastReadSizes last_read;
  // Relaxed: another open may come at any time.
  bool open_once() const { return handle_count.load(std::memory_order_relaxed) == 1; }

  // Guarded by the table's mutex.
  uint64_t lookup_count = 0;
  Fd fd;  // O_PATH, never replaced; none: `nodeid` is the handle
};

// While it lives, no program begins to append to the file without the kernel.
class ChangeUnderWay {
 public:
  explicit ChangeUnderWay(Inode* inode) : inode_(inode) {  // null: of no file
    if (inode_ != nullptr) inode_->changes_under_way.fetch_add(1);
  }
  ~ChangeUnderWay() {
    if (inode_ != nullptr) inode_->changes_under_way.fetch_sub(1);
  }
  ChangeUnderWay(const ChangeUnderWay&) = delete;
  ChangeUnderWay& operator=(const ChangeUnderWay&) = delete;

 private:
  Inode* const inode_;
};

class InodeTable {
 public:
  // `root_fd` is duplicated. `kept_max` limits the descriptors of inodes; only tests set it.
  explicit InodeTable(int root_fd, size_t kept_max = half_of_descriptors());

  Inode& root() const { return *root_; }
  Inode& of(fuse_ino_t nodeid);

  // A descriptor of its file. ESTALE: it was removed outside this mount.
  Result<HostPath> path(const Inode& inode);

  // Call it before `name` is removed. If the kernel still uses the file and its inode has no
  // descriptor, the inode gets one, because a handle cannot find a file without a name.
  void keep(int directory_fd, const char* name);

  // The inode of the O_PATH descriptor `fd`, with one more look-up.
  Inode& acquire(Fd fd, const struct stat& st, bool control);

  // The inode of this file of the host, with one more look-up. Null: the kernel does not know it,
  // or it is the root.
  Inode* find(const InodeKey& key);

  // The st_ino that the mount shows. find_shown() is its inverse, with the look-up of find().
  uint64_t shown_number(const Inode& inode) const {
    return is_elsewhere(inode) ? inode.nodeid : inode.key.number;
  }
  Inode* find_shown(uint64_t number);
  // Whether the file is on another filesystem than the root.
  bool is_elsewhere(const Inode& inode) const { return inode.key.device != root_->key.device; }

  // The inode with this number, which the kernel may have forgotten, with one more look-up. ESTALE:
  // the file is gone.
  Result<Inode*> acquire_again(fuse_ino_t nodeid);

  // Adds a look-up to an inode of which the caller, or the kernel, holds one.
  void hold(Inode& inode);

  const HostHandles& handles() const { return handles_; }
  static size_t half_of_descriptors();

  // Gives `count` look-ups back. The inode ends with its last one.
  void forget(fuse_ino_t nodeid, uint64_t count);

  // Whether descriptors are so short that look-ups without need (readdirplus) should be left out.
  bool crowded();

 private:
  const std::unique_ptr<Inode> root_;
  const HostHandles handles_;
  const size_t kept_max_;
  Mutex mu_;
  std::unordered_map<fuse_ino_t, std::unique_ptr<Inode>> inodes_ GUARDED_BY(mu_);
  // If two files had one key, the later one: the other is gone.
  std::unordered_map<InodeKey, Inode*, InodeKeyHash> by_key_ GUARDED_BY(mu_);
  size_t kept_count_ GUARDED_BY(mu_) = 0;  // inodes with a descriptor
  uint64_t made_up_count_ GUARDED_BY(mu_) = 0;

  int own_fd(const Inode& inode);
  Inode& count_look_up(Inode& inode) REQUIRES(mu_) { return ++inode.lookup_count, inode; }
  Inode* find_key(const InodeKey& key) REQUIRES(mu_);
  Inode& add(std::unique_ptr<Inode> inode) REQUIRES(mu_);
  fuse_ino_t free_nodeid(std::optional<uint64_t> wanted) REQUIRES(mu_);
};

}  // namespace graphlane::fuse
