#include "fuse/inode/passthrough.h"

#include <linux/capability.h>
#include <linux/fuse.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace graphlane::fuse {
namespace {

// libfuse's own calls need the request, which is gone if the answer to an open fails, and they log
// expected failures. Kernel headers before 6.9 lack these names.
#ifndef FUSE_DEV_IOC_BACKING_OPEN
struct fuse_backing_map {
  int32_t fd;
  uint32_t flags;
  uint64_t padding;
};
#define FUSE_DEV_IOC_BACKING_OPEN _IOW(229, 1, fuse_backing_map)
#define FUSE_DEV_IOC_BACKING_CLOSE _IOW(229, 2, uint32_t)
#endif

// The kernel writes to the host's file with the capabilities of the thread that made the id. With
// CAP_FSETID, set-id bits would survive every user's writes; without it, none.
class WithoutFsetid {
 public:
  WithoutFsetid() {
    if (::syscall(SYS_capget, &header_, before_) != 0) return;
    __user_cap_data_struct less[kWords] = {before_[0], before_[1]};
    less[CAP_TO_INDEX(CAP_FSETID)].effective &= ~CAP_TO_MASK(CAP_FSETID);
    dropped_ = ::syscall(SYS_capset, &header_, less) == 0;
  }
  ~WithoutFsetid() {
    if (dropped_) ::syscall(SYS_capset, &header_, before_);
  }
  bool dropped() const { return dropped_; }

 private:
  static constexpr size_t kWords = _LINUX_CAPABILITY_U32S_3;

  __user_cap_header_struct header_ = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct before_[kWords] = {};
  bool dropped_ = false;
};

int make_backing_id(int connection_fd, int host_fd) {
  const WithoutFsetid identity;
  if (!identity.dropped()) return 0;
  fuse_backing_map map = {.fd = host_fd, .flags = 0, .padding = 0};
  return std::max(0, ::ioctl(connection_fd, FUSE_DEV_IOC_BACKING_OPEN, &map));
}

}  // namespace

Passthrough::Open::Open(Passthrough& file, int connection_fd, int host_fd)
    : file_(file), connection_fd_(connection_fd), backing_id_(file.join(connection_fd, host_fd)) {}

Passthrough::Open::~Open() { file_.leave(connection_fd_); }

int Passthrough::join(int connection_fd, int host_fd) {
  MutexLock lock(mu_);
  if (open_count_++ == 0 && connection_fd >= 0) {
    backing_id_ = make_backing_id(connection_fd, host_fd);
  }
  return backing_id_;
}

// The kernel has let go of the last open before it tells us of its release.
// The kernel closes the last open before it sends the release.
void Passthrough::leave(int connection_fd) {
  MutexLock lock(mu_);
  if (--open_count_ > 0 || backing_id_ == 0) return;
  const uint32_t id = static_cast<uint32_t>(backing_id_);
  // on failure it ends with the mount
  (void)::ioctl(connection_fd, FUSE_DEV_IOC_BACKING_CLOSE, &id);
  backing_id_ = 0;
}

}  // namespace graphlane::fuse
