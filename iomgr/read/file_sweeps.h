// FileSweeps: prefetches for a program that reads its files one after another, through the page
// cache of their parts.
//
//   files     A ████  B ████  C ████  A ████ . . .     GraphChi's shards, in every sweep
//   passed(A)         └ what the last sweep read after A starts now, on all devices
//
// A file that fits in memory is left to the page cache. But the kernel knows each file alone: it
// never reads ahead into the next one. So the ranges that the predictor expects
// (sequence_predictor.h) are prefetched while the program computes. It needs no thread and no
// memory, because the kernel fills its page cache (POSIX_FADV_WILLNEED).
//
// The mount and the preload library own the open files, and look at the free memory.
//
// Threads: everything is safe from any thread. A signal handler that cannot have the lock gets no
// prediction. No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/base/uuid.h"
#include "iomgr/cache/page_cache_share.h"
#include "iomgr/read/pattern/sequence_predictor.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

// Prefetches the missing pages of the range into the page cache, on all devices at once,
// without waiting. `parts` are open through the page cache. Returns the missing bytes.
uint64_t begin_in_page_cache(const StripeMap& map, std::span<const int> parts, ByteRange range);
// Tells the kernel that it may drop the range from the page cache.
void drop_from_page_cache(const StripeMap& map, std::span<const int> parts, ByteRange range);

class FileSweeps {
 public:
  // Shorter reads are no step of a sweep.
  static constexpr uint64_t kStepMin = 256 << 10;

  // The ranges to prefetch now, perhaps of files that are not open any more.
  struct Next {
    static constexpr uint32_t kMax = 8;
    uint32_t count = 0;
    SequencePredictor::Prediction ranges[kMax];

    const SequencePredictor::Prediction* begin() const { return ranges; }
    const SequencePredictor::Prediction* end() const { return ranges + count; }
  };

  // Counts bytes read. True every 32 MiB: the caller must look at the free memory, and pass it on.
  bool is_look_due(uint64_t read_bytes);
  void look_soon();  // at the next read
  void set_available(uint64_t available_bytes);

  // A step (not empty) arrives. Returns how many of its bytes were predicted.
  uint64_t arrive(const Uuid& file_id, ByteRange step);
  // Reports that so many predicted bytes were read now, and how many of them were missing.
  void record_use(uint64_t predicted_bytes, uint64_t missing_bytes);
  // The step has its bytes. `size_bytes` of the file limits guesses at what was never read; 0: no
  // guesses.
  Next passed(const Uuid& file_id, ByteRange step, uint64_t size_bytes);

  PrefetchStats stats() const { return predictor_.stats(); }

 private:
  static constexpr int64_t kLookBytes = int64_t{32} << 20;
  // More than the next read gains nothing, and may be evicted before its use.
  static constexpr uint64_t kAheadEnough = uint64_t{16} << 20;

  SequencePredictor predictor_;
  PageCacheShare ahead_share_{MemoryUse::kPrefetchedPages};
  std::atomic<int64_t> unlooked_bytes_{0};  // may be read until the next look
};

}  // namespace graphlane
