#include "iomgr/base/uring.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "iomgr/base/setup_cookie.h"
#include "iomgr/base/sys.h"

namespace graphlane {

int set_up_ring(uint32_t entries, io_uring* ring, unsigned flags, int fd_floor) {
  io_uring_params parameters = {};
  parameters.flags = flags;
  const auto fd =
      static_cast<int>(::syscall(SYS_io_uring_setup, entries, &parameters, kSetupCookie));
  if (fd < 0) return -errno;
  const int status = io_uring_queue_mmap(fd, &parameters, ring);
  if (status < 0) {
    sys::close(fd);
    return status;
  }
  ring->features = parameters.features;
  // liburing 2.4 and newer never write the array again.
  for (uint32_t i = 0; i < parameters.sq_entries; ++i) ring->sq.array[i] = i;
  if (fd < fd_floor) {
    const int high = sys::fcntl(fd, F_DUPFD_CLOEXEC, fd_floor);
    if (high >= 0) {
      sys::close(fd);
      ring->ring_fd = ring->enter_ring_fd = high;
    }
  }
  return 0;
}

}  // namespace graphlane
