// ScanStream: the reads of one process in one file, by all its threads.
//
//   begin             head           ahead_end
//   |▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓|░░░░░░░░░░░░░░|
//         read          prefetched     as far again as was read since the begin, up to a maximum
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class ScanStream {
 public:
  // Threads of the process that scan the file.
  void add_thread() { ++thread_count_; }
  void remove_thread() { --thread_count_; }

  // Threads come in any order, each with its block, which may be several reads.
  void move_to(ByteRange range) {
    longest_bytes_ = std::max(longest_bytes_, range.length_bytes);
    const uint64_t slack = 2 * longest_bytes_ * std::max(thread_count_, 1u);
    if (range.offset > head_ + slack || range.end() + slack < head_) {
      if (range.offset >= head_) step_count_ = 0;  // back: the next sweep of the file
      begin_ = head_ = range.offset;
      ahead_end_ = range.end();
      longest_bytes_ = range.length_bytes;
    }
    if (range.end() <= head_) return;
    head_ = range.end();
    step_count_ += 1;
  }

  // False for random reads, and for repeated reads of one place.
  bool sweeps() const { return step_count_ >= kSweepSteps; }

  // The range to prefetch now; empty: enough is prefetched.
  ByteRange take_ahead(uint64_t length_max) {
    const uint64_t length = std::min(2 * (head_ - begin_), length_max);
    if (head_ + length / 2 < ahead_end_) return {.offset = head_, .length_bytes = 0};
    const uint64_t from = std::max(head_, ahead_end_);
    ahead_end_ = head_ + length;
    return {.offset = from, .length_bytes = ahead_end_ - std::min(from, ahead_end_)};
  }

 private:
  static constexpr uint32_t kSweepSteps = 3;  // forward reads that make a sweep

  uint64_t begin_ = 0;
  uint64_t head_ = 0;
  uint64_t ahead_end_ = 0;      // where prefetch has got to
  uint64_t longest_bytes_ = 0;  // of its reads
  uint32_t step_count_ = 0;     // reads that moved it forward
  uint32_t thread_count_ = 0;
};

}  // namespace graphlane
