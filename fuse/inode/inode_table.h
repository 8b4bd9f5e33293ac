// InodeTable: the files that the kernel knows, by (st_dev, st_ino).
//
//   kernel's nodeid  ──►  Inode  ──►  O_PATH descriptor of the host's file
//                           └───────► or its handle, opened when it is needed
//
// Where the host's handles allow it (host_handles.h), the nodeid is the file's
// for ever, and the kernel may come back with it after it has forgotten it;
// else it is a number that no other file had before.
//
// An Inode lives as long as the kernel holds a look-up of it. Its descriptor keeps
// the host's inode from being reused meanwhile, so st_ino can be the host's; but of
// another filesystem of the host's that is mounted in the volume (or a subvolume),
// where the same numbers are other files, it is the nodeid. The kernel remembers more
// files than we may have descriptors: when half of those are used, new inodes that
// their handles find do without. A handle tells a file from a later one of the same
// number; it does not keep a file that loses its name, so keep() comes before that.
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
#include "fuse/inode/stub_cache.h"
#include "fuse/ops/fuse_api.h"
#include "fuse/ops/read_sizes.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/mutex.h"

namespace graphlane {

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

// An O_PATH descriptor of an inode's file: the inode's own, or one for as long as
// this lives.
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

  StubCache stub;             // what it is, if it is a stub
  Passthrough passthrough;    // of a plain file
  std::atomic<uint32_t> handle_count{0};  // that the kernel has open
  std::atomic<uint32_t> writer_count{0};  // of them, those that may write and are not passed through
  std::atomic<uint32_t> mapper_count{0};  // … and may write by a shared mapping
  LastReadSizes last_read;
  // Relaxed: another may come just now.
  bool open_once() const { return handle_count.load(std::memory_order_relaxed) == 1; }

  // Guarded by the table's mutex.
  uint64_t lookup_count = 0;
  Fd fd;  // O_PATH, for good once it is there; none: `nodeid` is the handle
};

class InodeTable {
 public:
  // `root_fd` is duplicated. `kept_max`: so many descriptors are for inodes; half
  // of what we may have, unless a test wants less.
  explicit InodeTable(int root_fd, size_t kept_max = half_of_descriptors());

  Inode& root() const { return *root_; }
  Inode& of(fuse_ino_t nodeid);

  // The way to its file. ESTALE: it was removed behind us.
  Result<HostPath> path(const Inode& inode);

  // `name` is about to go. A file that the kernel still has in use is then found by
  // a descriptor only: if its inode has none, it gets one now.
  void keep(int directory_fd, const char* name);

  // The inode of the O_PATH descriptor `fd`, with one more look-up.
  Inode& acquire(Fd fd, const struct stat& st, bool control);

  // The inode of this file of the host's, with one more look-up; null: the kernel does
  // not know it, or it is the root.
  Inode* find(const InodeKey& key);

  // The st_ino that the mount shows, and the inode to which that belongs, as find().
  uint64_t shown_number(const Inode& inode) const {
    return is_elsewhere(inode) ? inode.nodeid : inode.key.number;
  }
  Inode* find_shown(uint64_t number);
  // Not on the root's filesystem.
  bool is_elsewhere(const Inode& inode) const { return inode.key.device != root_->key.device; }

  // The inode that the kernel knew by this number once, with one more look-up.
  // ESTALE: there is none any more.
  Result<Inode*> acquire_again(fuse_ino_t nodeid);

  // One more look-up of an inode that the caller, or the kernel, has looked up.
  void hold(Inode& inode);

  const HostHandles& handles() const { return handles_; }
  static size_t half_of_descriptors();

  // Gives `count` look-ups back; the last one ends the inode.
  void forget(fuse_ino_t nodeid, uint64_t count);

  // Whether so few descriptors are left that look-ups nobody asked for
  // (readdirplus) should not be made.
  bool crowded();

 private:
  const std::unique_ptr<Inode> root_;
  const HostHandles handles_;
  const size_t kept_max_;
  Mutex mu_;
  std::unordered_map<fuse_ino_t, std::unique_ptr<Inode>> inodes_ GUARDED_BY(mu_);
  // Of two with one key the later one: the other's file is gone.
  std::unordered_map<InodeKey, Inode*, InodeKeyHash> by_key_ GUARDED_BY(mu_);
  size_t kept_count_ GUARDED_BY(mu_) = 0;  // inodes with a descriptor
  uint64_t made_up_count_ GUARDED_BY(mu_) = 0;

  int own_fd(const Inode& inode);
  Inode& count_look_up(Inode& inode) REQUIRES(mu_) { return ++inode.lookup_count, inode; }
  Inode* find_key(const InodeKey& key) REQUIRES(mu_);
  Inode& add(std::unique_ptr<Inode> inode) REQUIRES(mu_);
  fuse_ino_t free_nodeid(std::optional<uint64_t> wanted) REQUIRES(mu_);
};

}  // namespace graphlane
