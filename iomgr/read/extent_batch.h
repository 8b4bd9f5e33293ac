// ExtentBatch: the frames of one request to the devices. Batches are a pool, because a thread's stack
// may have only 16 KiB.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "iomgr/base/slot_pool.h"
#include "iomgr/cache/cache.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

struct ExtentBatch {
  static constexpr uint32_t kFramesMax = 64;

  std::atomic<bool> taken{false};
  uint32_t piece_count = 0;
  uint32_t wait_count = 0;
  uint32_t late_count = 0;
  Piece pieces[kFramesMax];  // the request to the devices
  Fill fills[kFramesMax];    // the frame of a piece; empty: the caller's buffer
  FrameWait waits[kFramesMax];
  uint64_t wait_index[kFramesMax];
  bool wait_prefetched[kFramesMax];  // whether it is a prefetched frame
  Piece late[kFramesMax];            // pieces without a frame, perhaps unaligned

  void clear() { piece_count = wait_count = late_count = 0; }
  // The frame's bytes go straight into the caller's buffer.
  void add_bypass(const Piece& piece) { pieces[piece_count++] = piece; }
  void add_fill(ByteRange range, Fill&& fill) {
    pieces[piece_count] = {.range = range, .buffer = fill.bytes().data()};
    fills[piece_count++] = std::move(fill);
  }
  void add_wait(uint64_t frame_index, FrameWait&& wait, bool is_prefetched) {
    wait_index[wait_count] = frame_index;
    wait_prefetched[wait_count] = is_prefetched;
    waits[wait_count++] = std::move(wait);
  }
  // A piece of the caller's buffer that nothing was read into yet.
  void add_late(const Piece& piece) {
    Piece* const last = late_count == 0 ? nullptr : &late[late_count - 1];
    if (last != nullptr && last->range.end() == piece.range.offset) {
      last->range.length_bytes += piece.range.length_bytes;
    } else {
      late[late_count++] = piece;
    }
  }
  void stop_waiting() {
    for (uint32_t i = 0; i < wait_count; ++i) waits[i].release();
  }
};

class ExtentBatches {
 public:
  // A batch of one thread; empty: all are in use.
  class Borrowed {
   public:
    explicit Borrowed(ExtentBatches& pool) : batch_(take_free_slot(pool.batches_)) {}
    ~Borrowed() {
      if (batch_ != nullptr) free_slot(*batch_);
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    explicit operator bool() const { return batch_ != nullptr; }
    ExtentBatch& operator*() const { return *batch_; }

   private:
    ExtentBatch* const batch_;
  };

 private:
  static constexpr uint32_t kBatchCount = 32;
  ExtentBatch batches_[kBatchCount];
};

}  // namespace graphlane
