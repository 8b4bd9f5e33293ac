#include "fuse/inode_table.h"

#include <sys/resource.h>

#include <cassert>
#include <cstdio>

namespace graphlane {
namespace {

// Half of the descriptors are for inodes that readdirplus may collect; open
// files, parts and look-ups by name have the rest.
size_t half_of_descriptors() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 512;
  return limit.rlim_cur / 2;
}

std::unique_ptr<Inode> make_root(int root_fd) {
  auto root = std::make_unique<Inode>();
  root->fd.reset(::fcntl(root_fd, F_DUPFD_CLOEXEC, 0));
  struct stat st;
  if (::fstat(root_fd, &st) == 0) root->key = {.device = st.st_dev, .number = st.st_ino};
  return root;
}

// Numbers that we make up begin here: as a handle of ext4's it would be of
// generation 2^32 - 1.
constexpr uint64_t kMadeUpFirst = 0xffff'ffff'0000'0000u;

}  // namespace

InodeTable::InodeTable(int root_fd)
    : root_(make_root(root_fd)), handles_(root_->fd.get()), crowded_at_(half_of_descriptors()) {}

Inode& InodeTable::of(fuse_ino_t nodeid) {
  if (nodeid == FUSE_ROOT_ID) return *root_;
  MutexLock lock(mu_);
  const auto found = by_nodeid_.find(nodeid);
  assert(found != by_nodeid_.end());  // the kernel holds a look-up
  return *found->second;
}

Inode* InodeTable::count_look_up(const InodeKey& key) {
  if (key == root_->key) return root_.get();
  const auto found = inodes_.find(key);
  if (found == inodes_.end()) return nullptr;
  ++found->second->lookup_count;
  return found->second.get();
}

fuse_ino_t InodeTable::free_nodeid(std::optional<uint64_t> wanted) {
  uint64_t number = wanted ? *wanted : kMadeUpFirst + made_up_count_++;
  while (by_nodeid_.count(number) != 0) number = kMadeUpFirst + made_up_count_++;
  return number;
}

Inode& InodeTable::acquire(Fd fd, const struct stat& st, bool control) {
  const InodeKey key{.device = st.st_dev, .number = st.st_ino};
  {
    MutexLock lock(mu_);
    if (Inode* known = count_look_up(key)) return *known;
  }
  // What is below .graphlane is never found by number: it would be writable.
  const std::optional<uint64_t> number =
      control || !handles_.usable() ? std::nullopt : handles_.number_of(fd.get(), st);
  auto made = std::make_unique<Inode>();
  made->key = key;
  made->fd = std::move(fd);
  made->control = control;
  made->lookup_count = 1;
  Inode& inode = *made;
  MutexLock lock(mu_);
  if (Inode* known = count_look_up(key)) return *known;  // another thread was faster
  inode.nodeid = free_nodeid(number);
  by_nodeid_.emplace(inode.nodeid, &inode);
  try {
    inodes_.emplace(key, std::move(made));
  } catch (...) {
    by_nodeid_.erase(inode.nodeid);
    throw;
  }
  return inode;
}

Result<Inode*> InodeTable::acquire_again(fuse_ino_t nodeid) {
  {
    MutexLock lock(mu_);
    const auto found = by_nodeid_.find(nodeid);
    if (found != by_nodeid_.end()) return count_look_up(found->second->key);
  }
  if (!handles_.usable()) return Errno{ESTALE};
  Result<Fd> fd = handles_.open(nodeid);
  if (!fd) return fd.error();
  struct stat st;
  if (::fstat(fd->get(), &st) != 0) return last_errno();
  return &acquire(std::move(*fd), st, false);
}

Inode* InodeTable::find(uint64_t number) {
  MutexLock lock(mu_);
  const InodeKey key{.device = root_->key.device, .number = number};
  return key == root_->key ? nullptr : count_look_up(key);
}

void InodeTable::forget(fuse_ino_t nodeid, uint64_t count) {
  if (nodeid == FUSE_ROOT_ID) return;
  std::unique_ptr<Inode> last;  // closed after the mutex is released
  MutexLock lock(mu_);
  const auto found = by_nodeid_.find(nodeid);
  if (found == by_nodeid_.end()) return;
  Inode& inode = *found->second;
  assert(inode.lookup_count >= count);
  inode.lookup_count -= count;
  if (inode.lookup_count > 0) return;
  const auto owner = inodes_.find(inode.key);
  last = std::move(owner->second);
  inodes_.erase(owner);
  by_nodeid_.erase(found);
}

bool InodeTable::crowded() {
  MutexLock lock(mu_);
  return inodes_.size() > crowded_at_;
}

}  // namespace graphlane
