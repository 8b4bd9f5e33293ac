// FileSweeps: prefetches for a program that reads its files one after another, through the page
// cache of their parts.
//
//   files     A ████  B ████  C ████  A ████ . . .     GraphChi's shards, in every sweep
//                     └ after A, what the last sweep read next starts now, on all devices
//
// A file that fits in memory is left to the page cache. But the kernel knows each file alone: it
// never reads ahead into the next one. So the ranges that are expected (pattern_detector.h) are
// prefetched while the program computes. It needs no thread and no memory, because the kernel fills
// its page cache (POSIX_FADV_WILLNEED).
//
// The mount and the preload library own the open files, and look at the free memory.
//
// Threads: everything is safe from any thread. A signal handler that cannot have the lock gets no
// prediction. No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/base/counter.h"
#include "iomgr/base/futex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/cache/page_cache_share.h"
#include "iomgr/read/pattern/pattern_detector.h"
#include "iomgr/read/prefetch_ledger.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

// Counts of prefetched bytes in the page cache.
struct PrefetchStats {
  uint64_t prefetched_bytes = 0;
  uint64_t used_bytes = 0;    // read since
  uint64_t unused_bytes = 0;  // never read
};

template <class Visit>
void for_each_counter(const PrefetchStats& stats, Visit visit) {
  using Name = CounterName;
  visit(Name{"prefetched_bytes", "bytes prefetched", "Bytes prefetched into the page cache."},
        stats.prefetched_bytes);
  visit(Name{"used_bytes", "used", "Bytes prefetched and used."}, stats.used_bytes);
  visit(Name{"unused_bytes", "unused", "Bytes prefetched, unused."}, stats.unused_bytes);
}

// Prefetches the missing pages of the range into the page cache, on all devices at once,
// without waiting. `parts` are open through the page cache. Returns the missing bytes.
uint64_t prefetch_into_page_cache(const StripeMap& map, std::span<const int> parts,
                                  ByteRange range);
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
    PatternDetector::Prediction ranges[kMax];

    const PatternDetector::Prediction* begin() const { return ranges; }
    const PatternDetector::Prediction* end() const { return ranges + count; }
  };

  // Counts bytes read. True every 32 MiB: the caller must look at the free memory, and pass it on.
  bool is_memory_check_due(uint64_t read_bytes);
  void check_memory_soon();  // at the next read
  void set_available(uint64_t available_bytes);

  // A step (not empty) arrives. Returns how many of its bytes were predicted.
  uint64_t arrive(const Uuid& file_id, ByteRange step);
  // Reports that so many predicted bytes were read now, and how many of them were missing.
  void record_use(uint64_t predicted_bytes, uint64_t missing_bytes);
  // The step has its bytes. `size_bytes` of the file limits guesses at what was never read; 0: no
  // guesses.
  Next prefetches_after(const Uuid& file_id, ByteRange step, uint64_t size_bytes);

  PrefetchStats stats() const;

 private:
  static constexpr int64_t kLookBytes = int64_t{32} << 20;
  // More than the next read gains nothing, and may be evicted before its use.
  static constexpr uint64_t kAheadEnough = uint64_t{16} << 20;
  static constexpr uint64_t kVerdictBytes = uint64_t{32} << 20;
  static constexpr uint64_t kPatienceBytes = uint64_t{128} << 20;
  // Threads may read predictions out of order by so many. An older one was skipped, or was read
  // from the reader's memory (or the kernel's page cache over a mount).
  static constexpr uint64_t kReorderMax = 4;

  Next add_new(std::span<const PatternDetector::Prediction> found, uint64_t room_bytes,
               uint64_t whole_room_bytes);
  void count_unused(uint64_t bytes);

  PatternDetector patterns_{PatternDetector::RunEnd::kInAnyFile};
  PageCacheShare ahead_share_{MemoryUse::kPrefetchedPages};
  std::atomic<int64_t> unlooked_bytes_{0};  // may be read until the next look

  FutexLock lock_;         // guards the next member
  PrefetchLedger ledger_;  // of the detector's addresses

  // Relaxed: counts.
  std::atomic<uint64_t> prefetched_bytes_{0};
  std::atomic<uint64_t> used_bytes_{0};
  std::atomic<uint64_t> unused_bytes_{0};
};

}  // namespace graphlane
