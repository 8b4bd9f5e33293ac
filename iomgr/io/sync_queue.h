// SyncQueue: an IoQueue that does each I/O in push(). For concurrency, several threads own one
// each.
#pragma once

#include "iomgr/io/io_queue.h"

namespace graphlane {

class SyncQueue final : public IoQueue {
 public:
  // The capacity is one: a second I/O needs another thread.
  void push(LaneIo* io) override;
  Result<uint32_t> reap(std::span<IoCompletion> completions) override;
  uint32_t capacity() const override { return 1; }
  uint32_t in_flight() const override { return done_.io != nullptr ? 1 : 0; }

 private:
  IoCompletion done_;
};

}  // namespace graphlane
