// FaultQueue: an IoQueue that holds I/Os back, fails some and cuts transfers short, on request. The
// kernel does the rest.
#pragma once

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <vector>

#include "iomgr/base/sys.h"
#include "iomgr/io/io_queue.h"

namespace graphlane {

// Shared by the queues of one test.
class Faults {
 public:
  // While held, no I/O is submitted.
  void hold() {
    std::lock_guard lock(mu_);
    held_ = true;
  }
  void let_go() {
    std::lock_guard lock(mu_);
    held_ = false;
    changed_.notify_all();
  }
  // I/Os that touch this offset of their file fail.
  void fail(uint64_t part_offset, int error) {
    std::lock_guard lock(mu_);
    bad_offset_ = part_offset;
    error_ = error;
  }
  // No transfer moves more than this.
  void limit(uint64_t bytes) {
    std::lock_guard lock(mu_);
    limit_ = bytes;
  }
  // Blocks until so many I/Os wait to be submitted.
  void wait_for(size_t count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return lengths_.size() >= count; });
  }
  std::vector<uint64_t> lengths() {
    std::lock_guard lock(mu_);
    return lengths_;
  }

  int64_t transfer(LaneIo& io) {
    uint64_t limit;
    {
      std::unique_lock lock(mu_);
      lengths_.push_back(io.length_bytes);
      changed_.notify_all();
      changed_.wait(lock, [&] { return !held_; });
      if (error_ != 0 && io.part_offset <= bad_offset_ &&
          bad_offset_ < io.part_offset + io.length_bytes) {
        return -error_;
      }
      limit = limit_;
    }
    iovec iov[kIovMax];
    uint32_t count = 0;
    for (; count < io.iov_count && limit > 0; ++count) {
      iov[count] = io.iov[count];
      iov[count].iov_len = std::min<uint64_t>(iov[count].iov_len, limit);
      limit -= iov[count].iov_len;
    }
    const ssize_t moved = io.op == IoOp::kRead ? sys::preadv(io.fd, iov, count, io.part_offset)
                                               : sys::pwritev(io.fd, iov, count, io.part_offset);
    return moved < 0 ? -errno : moved;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool held_ = false;
  uint64_t bad_offset_ = 0;
  int error_ = 0;
  uint64_t limit_ = UINT64_MAX;
  std::vector<uint64_t> lengths_;
};

class FaultQueue final : public IoQueue {
 public:
  FaultQueue(Faults& faults, uint32_t depth) : faults_(faults), depth_(depth) {}
  void push(LaneIo* io) override { pushed_.push_back(io); }
  Result<uint32_t> reap(std::span<IoCompletion> completions) override {
    uint32_t count = 0;
    for (; count < completions.size() && !pushed_.empty(); ++count) {
      LaneIo* const io = pushed_.front();
      completions[count] = {.io = io, .result = faults_.transfer(*io)};
      pushed_.pop_front();
    }
    return count;
  }
  uint32_t capacity() const override { return depth_; }
  uint32_t in_flight() const override { return static_cast<uint32_t>(pushed_.size()); }

 private:
  Faults& faults_;
  const uint32_t depth_;
  std::deque<LaneIo*> pushed_;
};

}  // namespace graphlane
