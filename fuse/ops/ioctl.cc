// ioctl: a ticket for the mount's server (ticket_book.h), and the flags of chattr(1), which the
// host stores.
//
// For the flags the kernel sends a request of its own. It opens the file, checks that the caller
// owns it (and may set flags that only root may), and passes the argument as bytes.
//
// A striped file shows its stub's flags. It cannot have `append only` or `immutable`, because its
// stub is rewritten in place, and its parts would not have them.
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cstring>

#include "fuse/inode/open_file.h"
#include "fuse/ops/operations.h"

namespace graphlane::fuse {
namespace {

bool forbids_changes(int flags) { return (flags & (FS_APPEND_FL | FS_IMMUTABLE_FL)) != 0; }
bool forbids_changes(const struct fsxattr& flags) {
  return (flags.fsx_xflags & (FS_XFLAG_APPEND | FS_XFLAG_IMMUTABLE)) != 0;
}

template <class Flags>
int get_flags(fuse_req_t req, int path_fd, unsigned long command) {
  const Fd fd = reopen(path_fd, O_RDONLY);
  Flags flags{};
  if (!fd || ::ioctl(fd.get(), command, &flags) != 0) return errno;
  reply::ioctl(req, 0, &flags, sizeof flags);
  return 0;
}

template <class Flags>
int set_flags(Filesystem& fs, fuse_req_t req, Inode& inode, int path_fd, unsigned long command,
              const void* in, size_t in_size) {
  if (!fs.kernel_checks_flags) return ENOTTY;
  if (inode.control) return EROFS;
  Flags flags;
  if (in_size != sizeof flags) return EINVAL;
  std::memcpy(&flags, in, sizeof flags);
  const Fd fd = reopen(path_fd, O_RDONLY);
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) return errno;
  if (forbids_changes(flags) && !inode.stub.look(path_fd, st).plain()) return EOPNOTSUPP;
  if (::ioctl(fd.get(), command, &flags) != 0) return errno;
  drop_cached_attributes(fs, inode);  // ctime
  reply::ioctl(req, 0, nullptr, 0);
  return 0;
}

// Issues a ticket for a striped file's handle. Other handles need none.
int give_ticket(Filesystem& fs, fuse_req_t req, Inode& inode, OpenFile& handle) {
  if (!handle.striped || fs.server_name.size() != kServerNameSize) return ENODATA;
  TicketGrant grant{};
  std::memcpy(grant.server, fs.server_name.data(), kServerNameSize);
  fs.tickets.issue(handle, inode, ::fuse_req_ctx(req)->uid, &grant);
  reply::ioctl(req, 0, &grant, sizeof grant);
  return 0;
}

}  // namespace

int op::ioctl(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, unsigned command, void*,
              fuse_file_info* fi, unsigned flags, const void* in, size_t in_size, size_t out_size) {
  Inode& inode = fs.inodes.of(ino);
  if (command == kTicketIoctl) {
    const bool is_directory = (flags & FUSE_IOCTL_DIR) != 0;  // its handle is of another kind
    if (is_directory || out_size < sizeof(TicketGrant)) return ENOTTY;
    return give_ticket(fs, req, inode, OpenFile::of(fi));
  }
  const Result<HostPath> path = fs.inodes.path(inode);
  if (!path) return path.error().code;
  const int path_fd = path->get();
  switch (command) {
    case FS_IOC_GETFLAGS: return get_flags<int>(req, path_fd, command);
    case FS_IOC_SETFLAGS: return set_flags<int>(fs, req, inode, path_fd, command, in, in_size);
    case FS_IOC_FSGETXATTR: return get_flags<struct fsxattr>(req, path_fd, command);
    case FS_IOC_FSSETXATTR:
      return set_flags<struct fsxattr>(fs, req, inode, path_fd, command, in, in_size);
    default: return ENOTTY;
  }
}

}  // namespace graphlane::fuse
