// SequencePredictor: the order in which a program reads its files, and what it reads next
// (CSMqGraph §3.3).
//
//   files     A ████  B ████  C ████  A ████ . . .     GraphChi's shards, in every sweep
//   next                                     B, then C
//
// An engine that keeps its data in many short files sweeps them in the same order every time.
// So this treats all files as one long file, each far behind the one before. One ReadOrder
// (read_order.h) tells what followed when a place was read before. In the first sweep it
// predicts from sequential reads and strides within a file.
//
// It only predicts: file_sweeps.h prefetches into the page cache. A prediction leaves out what was
// predicted before, and is judged by whether it is read. After more wrong predictions than right
// ones it pauses.
//
// Threads: everything is safe from any thread, under one lock that is held for a scan of the
// order. A signal handler that cannot have the lock gets no prediction.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/base/counter.h"
#include "iomgr/base/futex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/read/pattern/guess_verdict.h"
#include "iomgr/read/pattern/pattern_detector.h"

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

class SequencePredictor {
 public:
  using Prediction = PatternDetector::Prediction;

  // A read (not empty) arrives. Returns how many of its bytes were predicted.
  uint64_t arrive(const Uuid& file_id, ByteRange range);

  // The read has its bytes. Predicts what comes next, without what was predicted already, at most
  // `bytes_max` ahead of the program. Returns the number of ranges. `size_bytes` of the file
  // limits guesses at what was never read; 0: no guesses.
  uint32_t predict(const Uuid& file_id, ByteRange range, uint64_t size_bytes, uint64_t bytes_max,
                   std::span<Prediction> next);

  PrefetchStats stats() const;

 private:
  static constexpr uint32_t kPendingMax = 64;
  static constexpr uint32_t kRangesMax = 16;  // examined at a time
  static constexpr uint64_t kVerdictBytes = uint64_t{32} << 20;
  static constexpr uint64_t kPatienceBytes = uint64_t{128} << 20;
  // Threads may read predictions out of order by so many. An older one was skipped, or was read
  // from the reader's memory (or the kernel's page cache over a mount).
  static constexpr uint64_t kLateMax = 4;

  // Predictions that are not read yet, in the order of the predictions.
  struct Pending {
    ByteRange range;
    uint64_t at = 0;  // on the clock
    uint64_t number = 0;
  };

  uint64_t consume(ByteRange range);
  void expire_late();
  void expire_first();
  uint64_t pending_bytes() const;
  bool cut_predicted(ByteRange* range) const;
  void add_pending(ByteRange range);
  void remove_pending(uint32_t index);

  PatternDetector patterns_;
  FutexLock lock_;        // guards the members below
  uint64_t clock_ = 0;    // bytes read
  GuessVerdict verdict_;  // on bytes
  uint32_t pending_count_ = 0;
  uint64_t last_number_ = 0;
  Pending pending_[kPendingMax];

  // Relaxed: counts.
  std::atomic<uint64_t> prefetched_bytes_{0};
  std::atomic<uint64_t> used_bytes_{0};
  std::atomic<uint64_t> unused_bytes_{0};
};

}  // namespace graphlane
