#include "fuse/inode/inode_table.h"

#include <sys/resource.h>

#include <cassert>
#include <cstdio>

namespace graphlane::fuse {
namespace {

std::unique_ptr<Inode> make_root(int root_fd) {
  auto root = std::make_unique<Inode>();
  root->fd.reset(::fcntl(root_fd, F_DUPFD_CLOEXEC, 0));
  struct stat st;
  if (::fstat(root_fd, &st) == 0) root->key = {.device = st.st_dev, .number = st.st_ino};
  return root;
}

// The first number of inodes without a handle. As an ext4 handle it would have generation 2^32 - 1.
constexpr uint64_t kMadeUpFirst = 0xffff'ffff'0000'0000u;

}  // namespace

// Half of the descriptor limit; the other half is for open files, parts and look-ups.
size_t InodeTable::half_of_descriptors() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 512;
  return limit.rlim_cur / 2;
}

InodeTable::InodeTable(int root_fd, size_t kept_max)
    : root_(make_root(root_fd)), handles_(root_->fd.get()), kept_max_(kept_max) {}

Inode& InodeTable::of(fuse_ino_t nodeid) {
  if (nodeid == FUSE_ROOT_ID) return *root_;
  MutexLock lock(mu_);
  const auto found = inodes_.find(nodeid);
  assert(found != inodes_.end());  // the kernel holds a look-up
  return *found->second;
}

int InodeTable::own_fd(const Inode& inode) {
  MutexLock lock(mu_);
  return inode.fd.get();
}

Result<HostPath> InodeTable::path(const Inode& inode) {
  if (const int own = own_fd(inode); own >= 0) return HostPath(own);
  Result<Fd> opened = handles_.open(inode.nodeid);
  if (opened) return HostPath(std::move(*opened));
  const int own = own_fd(inode);  // keep() may have given it one just now
  if (own < 0) return opened.error();
  return HostPath(own);
}

void InodeTable::keep(int directory_fd, const char* name) {
  {
    MutexLock lock(mu_);
    if (kept_count_ == inodes_.size()) return;  // all have a descriptor
  }
  Fd fd(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) return;
  const std::optional<uint64_t> number = handles_.number_of(fd.get(), st);
  MutexLock lock(mu_);
  Inode* inode = find_key({.device = st.st_dev, .number = st.st_ino});
  if (inode == nullptr || inode->fd || inode->nodeid != number) return;
  inode->fd = std::move(fd);
  ++kept_count_;
}

Inode* InodeTable::find_key(const InodeKey& key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

fuse_ino_t InodeTable::free_nodeid(std::optional<uint64_t> wanted) {
  uint64_t number = wanted ? *wanted : kMadeUpFirst + made_up_count_++;
  while (inodes_.count(number) != 0) number = kMadeUpFirst + made_up_count_++;
  return number;
}

Inode& InodeTable::add(std::unique_ptr<Inode> made) {
  Inode& inode = *made;
  const auto added = inodes_.emplace(inode.nodeid, std::move(made)).first;
  try {
    by_key_[inode.key] = &inode;
  } catch (...) {
    inodes_.erase(added);
    throw;
  }
  if (inode.fd) ++kept_count_;
  return inode;
}

Inode& InodeTable::acquire(Fd fd, const struct stat& st, bool control) {
  const InodeKey key{.device = st.st_dev, .number = st.st_ino};
  if (key == root_->key) return *root_;
  {
    MutexLock lock(mu_);
    Inode* known = find_key(key);
    if (known != nullptr && known->fd) return count_look_up(*known);
  }
  // Files below .graphlane get no handle number, because a look-up by number would make them
  // writable.
  const std::optional<uint64_t> number =
      control || !handles_.usable() ? std::nullopt : handles_.number_of(fd.get(), st);
  auto made = std::make_unique<Inode>();
  made->key = key;
  made->control = control;
  made->lookup_count = 1;
  MutexLock lock(mu_);
  Inode* known = find_key(key);  // another thread may have added it
  if (known != nullptr && (known->fd || known->nodeid == number)) return count_look_up(*known);
  made->nodeid = free_nodeid(number);
  if (made->nodeid != number || kept_count_ < kept_max_) made->fd = std::move(fd);
  return add(std::move(made));
}

Result<Inode*> InodeTable::acquire_again(fuse_ino_t nodeid) {
  {
    MutexLock lock(mu_);
    const auto found = inodes_.find(nodeid);
    if (found != inodes_.end()) return &count_look_up(*found->second);
  }
  if (!handles_.usable()) return Errno{ESTALE};
  Result<Fd> fd = handles_.open(nodeid);
  if (!fd) return fd.error();
  struct stat st;
  if (::fstat(fd->get(), &st) != 0) return last_errno();
  // Only for directories: from another file its directory cannot be found.
  if (S_ISDIR(st.st_mode) && !handles_.is_below_root(fd->get())) return Errno{ESTALE};
  return &acquire(std::move(*fd), st, false);
}

Inode* InodeTable::find(const InodeKey& key) {
  MutexLock lock(mu_);
  Inode* inode = find_key(key);
  return inode == nullptr ? nullptr : &count_look_up(*inode);
}

Inode* InodeTable::find_shown(uint64_t number) {
  {
    MutexLock lock(mu_);
    const auto made_up = inodes_.find(number);
    if (made_up != inodes_.end() && is_elsewhere(*made_up->second)) {
      return &count_look_up(*made_up->second);
    }
  }
  return find({.device = root_->key.device, .number = number});
}

void InodeTable::hold(Inode& inode) {
  MutexLock lock(mu_);
  (void)count_look_up(inode);
}

void InodeTable::forget(fuse_ino_t nodeid, uint64_t count) {
  if (nodeid == FUSE_ROOT_ID) return;
  std::unique_ptr<Inode> last;  // closed after the mutex is released
  MutexLock lock(mu_);
  const auto found = inodes_.find(nodeid);
  if (found == inodes_.end()) return;
  Inode& inode = *found->second;
  assert(inode.lookup_count >= count);
  inode.lookup_count -= count;
  if (inode.lookup_count > 0) return;
  if (find_key(inode.key) == &inode) by_key_.erase(inode.key);
  if (inode.fd) --kept_count_;
  last = std::move(found->second);
  inodes_.erase(found);
}

bool InodeTable::crowded() {
  MutexLock lock(mu_);
  return kept_count_ > kept_max_;
}

}  // namespace graphlane::fuse
