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

}  // namespace

ProcPath::ProcPath(int fd) { std::snprintf(text, sizeof text, "/proc/self/fd/%d", fd); }

InodeTable::InodeTable(int root_fd)
    : root_(make_root(root_fd)), crowded_at_(half_of_descriptors()) {}

Inode& InodeTable::acquire(Fd fd, const struct stat& st, bool control) {
  const InodeKey key{.device = st.st_dev, .number = st.st_ino};
  MutexLock lock(mu_);
  std::unique_ptr<Inode>& slot = inodes_[key];
  if (!slot) {
    try {
      slot = std::make_unique<Inode>();
    } catch (...) {
      inodes_.erase(key);
      throw;
    }
    slot->key = key;
    slot->fd = std::move(fd);
    slot->control = control;
  }
  ++slot->lookup_count;
  return *slot;
}

Inode* InodeTable::find(uint64_t number) {
  MutexLock lock(mu_);
  const auto found = inodes_.find({.device = root_->key.device, .number = number});
  if (found == inodes_.end()) return nullptr;
  ++found->second->lookup_count;
  return found->second.get();
}

void InodeTable::forget(fuse_ino_t nodeid, uint64_t count) {
  if (nodeid == FUSE_ROOT_ID) return;
  std::unique_ptr<Inode> last;  // closed after the mutex is released
  MutexLock lock(mu_);
  const auto found = inodes_.find(of(nodeid).key);
  if (found == inodes_.end()) return;
  assert(found->second->lookup_count >= count);
  found->second->lookup_count -= count;
  if (found->second->lookup_count > 0) return;
  last = std::move(found->second);
  inodes_.erase(found);
}

bool InodeTable::crowded() {
  MutexLock lock(mu_);
  return inodes_.size() > crowded_at_;
}

}  // namespace graphlane
