// UringQueue: an IoQueue over io_uring.
#pragma once

#include <liburing.h>

#include "iomgr/io/io_queue.h"

namespace graphlane {

// As io_uring_queue_init(), with the project's cookie (setup_cookie.h): 0 or -errno. The descriptor
// gets a number from `fd_floor` on, if there is one. It ends with io_uring_queue_exit().
int set_up_ring(uint32_t entries, io_uring* ring, unsigned flags, int fd_floor);

class UringQueue final : public IoQueue {
 public:
  UringQueue() = default;
  ~UringQueue() override;
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  Result<void> open(uint32_t depth, int fd_floor);

  void push(LaneIo* io) override;
  Result<uint32_t> reap(std::span<IoCompletion> completions) override;
  bool wake_by(int event_fd) override;
  uint32_t capacity() const override { return depth_; }
  uint32_t in_flight() const override { return in_flight_; }
  int internal_fd() const override { return depth_ > 0 ? ring_.ring_fd : -1; }

 private:
  io_uring ring_{};
  uint32_t depth_ = 0;  // 0: not open
  uint32_t in_flight_ = 0;
  int armed_fd_ = -1;  // the eventfd that wakes reap()
};

}  // namespace graphlane
