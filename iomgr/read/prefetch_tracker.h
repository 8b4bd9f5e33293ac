// PrefetchTracker: the prefetched frames of each file, and whether they were used.
//
// What comes next is predicted by pattern_detector.h, or hinted by a reader. The prefetched frames
// are pinned, so that no policy evicts them before their use. They are released when a read has
// passed them, or when so much of the file was read since that no reader will need them. A file
// with more wrong guesses than right ones pauses.
//
// Threads: everything is safe from any thread, under one lock that is held for a scan of a
// file's entry. A signal handler that cannot have the lock reads without prefetch.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/futex.h"
#include "iomgr/cache/cache.h"
#include "iomgr/read/extent_file.h"
#include "iomgr/read/pattern/pattern_detector.h"
#include "iomgr/read/prefetch_ledger.h"

namespace graphlane {

inline PatternDetector::File pattern_file(const ExtentFile& file) {
  return {.file_id = file.file_id, .generation = file.generation};
}

// Counts of prefetched frames.
struct AheadStats {
  uint64_t fetched = 0;
  uint64_t used = 0;    // a read has passed them
  uint64_t unused = 0;  // released unused
};

class PrefetchTracker {
 public:
  // The most prefetched frames of one file.
  static constexpr uint32_t kAheadMax = PrefetchLedger::kItemsMax;
  static constexpr uint32_t kRangesMax = 16;

  // The ranges expected next, in order. A prefetch keeps `window_bytes` of them in memory, and
  // starts when `step_bytes` are missing, or when all that is left is missing.
  struct Forecast {
    uint64_t window_bytes = 0;
    uint64_t step_bytes = 0;
    uint32_t count = 0;
    ByteRange ranges[kRangesMax];
  };

  explicit PrefetchTracker(PatternDetector& patterns) : patterns_(patterns) {}

  // A read arrives.
  void begin_read(const ExtentFile& file, ByteRange range);
  // The read has its bytes, and has released its frames.
  void end_read(const ExtentFile& file, ByteRange range);

  // Predicts what follows the read. The window is two of the longest reads, at least two of
  // `step_bytes`, at most `reach_bytes`. False: nothing, or too early unless it is `urgent`.
  bool predict(const ExtentFile& file, ByteRange range, bool is_sequential, bool urgent,
               uint64_t step_bytes, uint64_t reach_bytes, Forecast* forecast);

  // A reader needs the range (not empty) soon. It comes first in each forecast until it is read
  // or given up.
  void hint(const ExtentFile& file, ByteRange range, uint64_t reach_bytes, Forecast* forecast);

  // Adds a frame that is due after so many bytes: with a pin if it is in memory already, without
  // one if its prefetch starts now.
  void add(const FrameKey& key, uint64_t distance_bytes, Pin pin = {});
  // The prefetch has ended. Pins the frame, unless a read has passed it meanwhile.
  void complete(const FrameKey& key, Pin pin);

  // Releases all frames.
  void clear();

  AheadStats stats() const;

 private:
  static constexpr uint32_t kFileCount = 32;  // GraphChi sweeps its shards in turn
  static constexpr uint32_t kIdleMax = 256;   // reads of other files before a file's frames go
  // A frame is given up when so many bytes of its file and so many reads came since it was due.
  static constexpr uint64_t kPatienceBytes = kAheadMax / 2 * kExtentFrameBytes;
  static constexpr uint32_t kLateReads = 8;
  static constexpr uint32_t kHintsMax = 8;
  static constexpr uint64_t kVerdictBytes = 64 * kExtentFrameBytes;  // before guesses are judged

  struct Entry {
    Uuid file_id;
    uint64_t generation = 0;
    bool used = false;
    uint32_t last_used = 0;
    uint64_t longest = 0;    // the longest read recently
    uint64_t next_look = 0;  // on the ledger's clock
    uint32_t hint_count = 0;
    ByteRange hints[kHintsMax];  // in the order of arrival, none empty
    PrefetchLedger ledger;       // a frame each
  };

  Entry* find(const Uuid& file_id, uint64_t generation);
  Entry* begin_entry(const ExtentFile& file);
  Entry* use(const ExtentFile& file);
  void cut_hints(Entry& entry, ByteRange range);
  void expire_late(Entry& entry);
  void let_go(Entry& entry);

  PatternDetector& patterns_;
  FutexLock lock_;  // guards the members below
  uint32_t clock_ = 0;
  Entry entries_[kFileCount];

  // Relaxed: counts.
  std::atomic<uint64_t> fetched_{0};
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> unused_{0};
};

}  // namespace graphlane
