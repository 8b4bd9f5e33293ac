// Look-ups by name and by number, link targets, and the filesystem's size.
#include <limits.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "fuse/ops/operations.h"

namespace graphlane::fuse {
namespace {

// For open_by_handle_at() the kernel has a number only. It looks the file itself up as ".", then
// the directories above as "..".
int look_up_again(Filesystem& fs, fuse_ino_t nodeid, std::string_view name,
                  fuse_entry_param* entry) {
  if (name == ".") {
    const Result<Inode*> inode = fs.inodes.acquire_again(nodeid);
    return inode ? describe_entry(fs, **inode, entry) : inode.error().code;
  }
  const Inode& inode = fs.inodes.of(nodeid);
  const Result<HostPath> path = fs.inodes.path(inode);
  if (!path || !fs.inodes.handles().is_below_root(path->get())) return ESTALE;
  if (&inode == &fs.inodes.root()) return describe_entry(fs, fs.inodes.root(), entry);
  Fd above(::openat(path->get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat st;
  if (!above || ::fstat(above.get(), &st) != 0) return errno;
  return describe_entry(fs, fs.inodes.acquire(std::move(above), st, inode.control), entry);
}

}  // namespace

int op::lookup(Filesystem& fs, fuse_req_t req, fuse_ino_t parent, const char* name) {
  fuse_entry_param entry;
  const int error = is_dot(name) ? look_up_again(fs, parent, name, &entry)
                                 : look_up(fs, fs.inodes.of(parent), name, &entry);
  if (error == ENOENT && fs.options.negative_timeout_seconds > 0) {
    entry = {};  // inode 0: the name does not exist, which the kernel may cache
    entry.entry_timeout = fs.options.negative_timeout_seconds;
  } else if (error != 0) {
    return error;
  }
  if (reply::entry(req, &entry) == -ENOENT && entry.ino != 0) fs.inodes.forget(entry.ino, 1);
  return 0;
}

int op::forget(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, uint64_t count) {
  fs.inodes.forget(ino, count);
  reply::none(req);
  return 0;
}

int op::forget_multi(Filesystem& fs, fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i) fs.inodes.forget(forgets[i].ino, forgets[i].nlookup);
  reply::none(req);
  return 0;
}

int op::readlink(Filesystem& fs, fuse_req_t req, fuse_ino_t ino) {
  const Result<HostPath> path = fs.inodes.path(fs.inodes.of(ino));
  if (!path) return path.error().code;
  char target[PATH_MAX + 1];
  const ssize_t length = ::readlinkat(path->get(), "", target, sizeof target);
  if (length < 0) return errno;
  if (length == sizeof target) return ENAMETOOLONG;
  target[length] = '\0';
  reply::readlink(req, target);
  return 0;
}

// Sums the volume's own filesystem and the devices', each once.
int op::statfs(Filesystem& fs, fuse_req_t req, fuse_ino_t ino) {
  const Result<HostPath> path = fs.inodes.path(fs.inodes.of(ino));
  if (!path) return path.error().code;
  struct statvfs total;
  struct stat st;
  if (::fstatvfs(path->get(), &total) != 0 || ::fstat(path->get(), &st) != 0) return errno;
  std::vector<dev_t> counted = {st.st_dev};
  for (const Device& device : fs.volume->devices()) {
    struct statvfs more;
    const int fd = device.root_fd.get();
    if (::fstat(fd, &st) != 0 || ::fstatvfs(fd, &more) != 0 || total.f_frsize == 0) continue;
    if (std::find(counted.begin(), counted.end(), st.st_dev) != counted.end()) continue;
    counted.push_back(st.st_dev);
    const double scale = static_cast<double>(more.f_frsize) / static_cast<double>(total.f_frsize);
    const auto scaled = [scale](fsblkcnt_t blocks) {
      return static_cast<fsblkcnt_t>(static_cast<double>(blocks) * scale);
    };
    total.f_blocks += scaled(more.f_blocks);
    total.f_bfree += scaled(more.f_bfree);
    total.f_bavail += scaled(more.f_bavail);
  }
  reply::statfs(req, &total);
  return 0;
}

}  // namespace graphlane::fuse
