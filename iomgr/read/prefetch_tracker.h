// PrefetchTracker: what is read ahead of each file, and what has become of it.
//
// Every file has the order of its reads (read_order.h), what its readers have said that they
// will need, and the frames that were read ahead for it. These are pinned, so that no policy
// takes them before they are asked for, until a read has passed them, or so much else of the
// file has been read that nobody will come for them. Who guesses wrong more often than right
// pauses.
//
// Threads: everything is safe from any thread, under one lock that is held for a
// scan of a file's entry; who cannot have it, in a signal handler, reads without.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/futex.h"
#include "iomgr/cache/cache.h"
#include "iomgr/read/extent_file.h"
#include "iomgr/read/read_order.h"

namespace graphlane {

// What was read ahead, in frames.
struct AheadStats {
  uint64_t fetched = 0;
  uint64_t passed = 0;  // a read has gone past them
  uint64_t wasted = 0;  // nobody came for them
};

class PrefetchTracker {
 public:
  // Frames that one file has read ahead, at most.
  static constexpr uint32_t kAheadMax = 128;
  static constexpr uint32_t kRangesMax = 16;

  // What is expected next, in order, and how much of it is to be had: begun when
  // `step_bytes` of `window_bytes` are missing, or all that is left.
  struct Forecast {
    uint64_t window_bytes = 0;
    uint64_t step_bytes = 0;
    uint32_t count = 0;
    ByteRange ranges[kRangesMax];
  };

  // A read, when it is asked for.
  void arrive(const ExtentFile& file, ByteRange range);
  // It has its bytes: it holds no frame any longer.
  void pass(const ExtentFile& file, ByteRange range);

  // After that: two of the longest reads, two of `step_bytes` at least, `reach_bytes` at
  // most. False: nothing; or nothing yet, unless it is `urgent`.
  bool expect(const ExtentFile& file, ByteRange range, bool is_sequential, bool urgent,
              uint64_t step_bytes, uint64_t reach_bytes, Forecast* forecast);

  // Its reader will need the range, which is not empty: it is expected before all else, until
  // it is read, or given up.
  void hint(const ExtentFile& file, ByteRange range, uint64_t reach_bytes, Forecast* forecast);

  // A frame that is expected when so many bytes have been read: in memory still, or, without a
  // pin, begun now.
  void hold(const FrameKey& key, uint64_t distance_bytes, Pin pin = {});
  // What was begun is there: held, unless a read has gone past it meanwhile.
  void keep(const FrameKey& key, Pin pin);

  // Lets go of everything.
  void clear();

  AheadStats stats() const;

 private:
  static constexpr uint32_t kFileCount = 32;  // GraphChi sweeps its shards in turn
  static constexpr uint32_t kIdleMax = 256;  // reads of others before a file lets go
  // A frame is given up when so much of its file, and so many reads, have gone by since it was due.
  static constexpr uint64_t kPatienceBytes = kAheadMax / 2 * kExtentFrameBytes;
  static constexpr uint32_t kLateReads = 8;
  static constexpr uint32_t kHintsMax = 8;
  static constexpr uint32_t kJudgedFrames = 64;  // before guesses are called wrong
  static constexpr uint64_t kPauseBytes = uint64_t{512} << 20;

  struct Held {
    uint64_t frame_index = 0;
    uint64_t due = 0;  // by the file's clock
    Pin pin;           // none: on its way
  };
  struct Entry {
    Uuid file_id;
    uint64_t generation = 0;
    bool used = false;
    uint32_t last_used = 0;
    uint64_t clock = 0;       // bytes asked for
    uint64_t longest = 0;     // read, of late
    uint64_t next_look = 0;   // by the clock
    uint64_t paused_until = 0;
    uint32_t passed = 0;      // frames, of late
    uint32_t wasted = 0;
    uint32_t held_count = 0;
    uint32_t hint_count = 0;
    ByteRange hints[kHintsMax];  // as they came, none empty
    ReadOrder order;
    Held held[kAheadMax];
  };

  Entry* find(const Uuid& file_id, uint64_t generation);
  Entry* begin_entry(const ExtentFile& file);
  Entry* use(const ExtentFile& file);
  static Held* find_held(Entry& entry, uint64_t frame_index);
  void cut_hints(Entry& entry, ByteRange range);
  void give_up_late(Entry& entry);
  void let_go(Entry& entry);
  void judge(Entry& entry);
  template <class Predicate>
  uint32_t release_if(Entry& entry, Predicate predicate);

  FutexLock lock_;  // over what follows
  uint32_t clock_ = 0;
  Entry entries_[kFileCount];

  // Relaxed: counts.
  std::atomic<uint64_t> fetched_{0};
  std::atomic<uint64_t> passed_{0};
  std::atomic<uint64_t> wasted_{0};
};

}  // namespace graphlane
