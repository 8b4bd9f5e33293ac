#include "iomgr/base/files/warm_up.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "iomgr/base/sys.h"
#include "iomgr/base/uring.h"

namespace graphlane {
namespace {

// All queries write it, one perhaps after its ring has failed.
struct statx ignored_stat;

}  // namespace

bool is_cold(int directory_fd, const char* path) {
  const open_how how{.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                     .mode = 0,
                     .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_CACHED};
  const int saved_errno = errno;
  const auto fd = static_cast<int>(::syscall(SYS_openat2, directory_fd, path, &how, sizeof how));
  const bool cold = fd < 0 && errno == EAGAIN;
  if (fd >= 0) sys::close(fd);
  errno = saved_errno;
  return cold;
}

void warm_up(std::span<const int> directory_fds, std::span<const char* const> paths, int fd_floor) {
  const auto count = static_cast<uint32_t>(directory_fds.size() * paths.size());
  const int saved_errno = errno;
  io_uring ring;
  if (count < 2 || set_up_ring(count, &ring, 0, fd_floor) < 0) {
    errno = saved_errno;
    return;
  }
  for (const char* const path : paths) {
    for (const int directory_fd : directory_fds) {
      io_uring_sqe* const sqe = io_uring_get_sqe(&ring);  // never null: `count` entries
      io_uring_prep_statx(sqe, directory_fd, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                          STATX_BASIC_STATS, &ignored_stat);
    }
  }
  uint32_t done = 0;
  while (done < count) {
    const int status = io_uring_submit_and_wait(&ring, 1);
    if (status < 0 && status != -EINTR) break;
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring, &cqe) == 0) {
      io_uring_cqe_seen(&ring, cqe);
      ++done;
    }
  }
  io_uring_queue_exit(&ring);
  errno = saved_errno;
}

}  // namespace graphlane
