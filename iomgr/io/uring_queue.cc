#include "iomgr/io/uring_queue.h"

#include <poll.h>

#include <utility>

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

Result<void> UringQueue::open(uint32_t depth, int fd_floor) {
  // COOP_TASKRUN (5.19): the kernel handles completions when the thread enters it anyway, and does
  // not interrupt the program's computation.
  const uint32_t entries = depth + 1;  // one more for wake_by()
  int status = set_up_ring(entries, &ring_, IORING_SETUP_COOP_TASKRUN, fd_floor);
  if (status == -EINVAL) status = set_up_ring(entries, &ring_, 0, fd_floor);
  if (status < 0) return Errno{-status};
  depth_ = depth;
  return {};
}

UringQueue::~UringQueue() {
  if (depth_ > 0) io_uring_queue_exit(&ring_);
}

void UringQueue::push(LaneIo* io) {
  assert(in_flight_ < depth_);
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);  // never null: depth_ + 1 entries
  if (io->op == IoOp::kRead) {
    io_uring_prep_readv(sqe, io->fd, io->iov, io->iov_count, io->part_offset);
  } else {
    io_uring_prep_writev(sqe, io->fd, io->iov, io->iov_count, io->part_offset);
  }
  io_uring_sqe_set_data(sqe, io);
  ++in_flight_;
}

bool UringQueue::wake_by(int event_fd) {
  if (armed_fd_ >= 0) return true;
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  io_uring_prep_poll_add(sqe, event_fd, POLLIN);
  io_uring_sqe_set_data(sqe, nullptr);
  armed_fd_ = event_fd;
  return true;
}

Result<uint32_t> UringQueue::reap(std::span<IoCompletion> completions) {
  if ((in_flight_ == 0 && armed_fd_ < 0) || completions.empty()) return 0u;
  // One call sends and waits. EAGAIN and EBUSY (the kernel is short of memory,
  // or wants completions taken first) and EINTR leave the entries in the ring.
  while (true) {
    const int status = io_uring_submit_and_wait(&ring_, 1);
    if (status >= 0 || status == -EBUSY) break;
    if (status != -EINTR && status != -EAGAIN) return Errno{-status};
    if (io_uring_cq_ready(&ring_) > 0) break;
  }
  uint32_t count = 0;
  io_uring_cqe* cqe = nullptr;
  while (count < completions.size() && io_uring_peek_cqe(&ring_, &cqe) == 0) {
    auto* const io = static_cast<LaneIo*>(io_uring_cqe_get_data(cqe));
    if (io != nullptr) {
      completions[count++] = {.io = io, .result = cqe->res};
    } else {
      uint64_t value;
      (void)!sys::read(std::exchange(armed_fd_, -1), &value, sizeof value);
    }
    io_uring_cqe_seen(&ring_, cqe);
  }
  in_flight_ -= count;
  return count;
}

}  // namespace graphlane
