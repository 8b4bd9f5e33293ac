// AioQueue: an IoQueue over the kernel's asynchronous I/O (libaio). It is
// asynchronous for O_DIRECT; reads through the page cache block in push().
#pragma once

#include <linux/aio_abi.h>

#include "iomgr/io/io_queue.h"

namespace graphlane {

class AioQueue final : public IoQueue {
 public:
  AioQueue() = default;
  ~AioQueue() override;
  AioQueue(const AioQueue&) = delete;
  AioQueue& operator=(const AioQueue&) = delete;

  Result<void> open(uint32_t depth);

  void push(LaneIo* io) override;
  Result<uint32_t> reap(std::span<IoCompletion> completions) override;
  bool wake_by(int event_fd) override;
  uint32_t capacity() const override { return depth_; }
  uint32_t in_flight() const override { return in_flight_; }

 private:
  aio_context_t context_ = 0;
  uint32_t depth_ = 0;
  uint32_t in_flight_ = 0;
  int armed_fd_ = -1;  // the eventfd that wakes reap()
  uint32_t free_count_ = 0;
  // I/Os that io_submit refused: they complete with its error.
  uint32_t refused_count_ = 0;
  IoCompletion refused_[kQueueDepthMax];
  iocb* free_[kQueueDepthMax];
  iocb control_blocks_[kQueueDepthMax];
  iocb wake_block_;
};

}  // namespace graphlane
