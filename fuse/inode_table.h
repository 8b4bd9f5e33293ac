// InodeTable: the files that the kernel knows, by (st_dev, st_ino).
//
//   kernel's nodeid  ──►  Inode  ──►  O_PATH descriptor of the host's file
//
// Where the host's handles allow it (host_handles.h), the nodeid is the file's
// for ever, and the kernel may come back with it after it has forgotten it;
// else it is a number that no other file had before.
//
// An Inode lives as long as the kernel holds a look-up of it. Its descriptor
// keeps the host's inode from being reused meanwhile, so a key never changes
// its meaning, and st_ino can be the host's.
//
// Threads: everything is safe from any thread.
// Invariant: an Inode is in the table iff lookup_count > 0; the root always is.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "fuse/fuse_api.h"
#include "fuse/host_handles.h"
#include "fuse/passthrough.h"
#include "fuse/stub_cache.h"
#include "iomgr/base/mutex.h"
#include "iomgr/base/reopen.h"

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

struct Inode {
  // Constant after construction.
  InodeKey key;
  fuse_ino_t nodeid = FUSE_ROOT_ID;
  Fd fd;                 // O_PATH
  bool control = false;  // .graphlane, or below it: read-only

  StubCache stub;             // what it is, if it is a stub
  Passthrough passthrough;    // of a plain file
  std::atomic<uint32_t> handle_count{0};  // that the kernel has open
  uint64_t lookup_count = 0;  // guarded by the table's mutex
};

class InodeTable {
 public:
  // `root_fd` is duplicated.
  explicit InodeTable(int root_fd);

  Inode& root() const { return *root_; }
  Inode& of(fuse_ino_t nodeid);

  // The inode of the O_PATH descriptor `fd`, with one more look-up.
  Inode& acquire(Fd fd, const struct stat& st, bool control);

  // The inode with this number on the root's filesystem, with one more look-up;
  // null: the kernel does not know it, or it is the root.
  Inode* find(uint64_t number);

  // The inode that the kernel knew by this number once, with one more look-up.
  // ESTALE: there is none any more.
  Result<Inode*> acquire_again(fuse_ino_t nodeid);

  const HostHandles& handles() const { return handles_; }

  // Gives `count` look-ups back; the last one ends the inode.
  void forget(fuse_ino_t nodeid, uint64_t count);

  // Whether so few descriptors are left that look-ups nobody asked for
  // (readdirplus) should not be made.
  bool crowded();

 private:
  const std::unique_ptr<Inode> root_;
  const HostHandles handles_;
  const size_t crowded_at_;
  Mutex mu_;
  std::unordered_map<InodeKey, std::unique_ptr<Inode>, InodeKeyHash> inodes_ GUARDED_BY(mu_);
  std::unordered_map<fuse_ino_t, Inode*> by_nodeid_ GUARDED_BY(mu_);
  uint64_t made_up_count_ GUARDED_BY(mu_) = 0;

  Inode* count_look_up(const InodeKey& key) REQUIRES(mu_);
  fuse_ino_t free_nodeid(std::optional<uint64_t> wanted) REQUIRES(mu_);
};

}  // namespace graphlane
