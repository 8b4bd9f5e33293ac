// ReadStream: a stretch of a file that is being read in ascending order, more or less. An engine's
// threads take the blocks of one sweep in turn, so their reads come out of order, and skip inactive
// blocks.
//
//   begin               end         ahead_end
//   |███ ████ ██ ████ ██|░░░░░░░░░░░|
//      asked for          prefetched
//
// Not thread-safe. No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class ReadStream {
 public:
  uint64_t end() const { return end_; }

  // Whether the read is at most `slack_bytes` away from its end: there the stream goes on. Reads of
  // what it has passed are others. False for an empty stream.
  bool is_near_end(ByteRange range, uint64_t slack_bytes) const {
    return end_ > begin_ && range.end() + slack_bytes >= end_ && range.offset <= end_ + slack_bytes;
  }
  // Adds a read (not empty) that is near the end.
  void extend(ByteRange range);
  // Begins again at this read (not empty). A read before the end is the next sweep of the same
  // stream, which keeps its number of reads.
  void restart(ByteRange range);

  // Whether at least `reads_min` reads have moved its end, and at least half of it was asked for.
  bool is_dense(uint32_t reads_min) const {
    return read_count_ >= reads_min && asked_bytes_ >= (end_ - begin_) / 2;
  }

  // The range to prefetch now: up to twice what was read behind the end, at most `length_max`. Empty:
  // more than half of that is prefetched.
  ByteRange take_ahead(uint64_t length_max);

 private:
  static constexpr uint64_t kSpanMax = uint64_t{1} << 30;  // older bytes fade

  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t ahead_end_ = 0;
  uint64_t asked_bytes_ = 0;  // repeated reads count twice
  uint32_t read_count_ = 0;   // that have moved the end
};

}  // namespace graphlane
