// StreamTable: which reads belong to a sequential stream, and how far to read ahead
// of it (CSMqGraph §3.3).
//
// An engine's threads take the blocks of one sweep in turn, so a stream's reads come
// out of order, and skip what is inactive. A stream is therefore no chain of offsets
// that fit, but a stretch of a file of which most has been asked for:
//
//   asked     ███ ████ ██ ███░░░░░         span: from the first to the furthest byte
//             └──── span ───┘└ ahead       dense when at least half of it was asked for
//
// A read is told how far to read on while the devices are at it anyway (observe), or, where
// reads can be begun without waiting for them, what to begin when it is done (next_ahead).
// Frames that were read ahead stay pinned, so that no policy takes them before they are
// asked for, until a read has passed them, or their stream makes room for another.
//
// Threads: everything is safe from any thread, under one lock that is held for a
// scan of the table; who cannot have it, in a signal handler, reads without.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/futex.h"
#include "iomgr/cache.h"
#include "iomgr/extent_file.h"
#include "iomgr/stripe.h"

namespace graphlane {

// What was read ahead, in frames.
struct AheadStats {
  uint64_t fetched = 0;
  uint64_t passed = 0;  // a read has gone past them
  uint64_t wasted = 0;  // their stream ended before
};

class StreamTable {
 public:
  // Frames that one stream has read ahead, at most.
  static constexpr uint32_t kAheadMax = 128;

  // What a read is told; pass it to keep().
  struct Advice {
    uint64_t fetch_end = 0;  // bytes; the end of the read: nothing to read ahead
    uint32_t stream = 0;
    uint32_t serial = 0;  // 0: of no stream
  };

  // A read of `range`, not empty, of a file's generation. A stream is read ahead to the next
  // multiple of `quantum_bytes`, at most `ahead_max_bytes` behind the range.
  Advice observe(const Uuid& file_id, uint64_t generation, ByteRange range,
                 uint64_t quantum_bytes, uint64_t ahead_max_bytes);

  // After such a read: what of its stream is to be begun now, so that two of its longest
  // reads, two of `step_bytes` at least, `reach_bytes` at most, are under way behind the
  // furthest; empty until that is one of them. Counts as begun.
  ByteRange next_ahead(const Advice& advice, ByteRange range, uint64_t step_bytes,
                       uint64_t reach_bytes);

  // A frame that was read ahead on this advice.
  void keep(const Advice& advice, uint64_t frame_index, Pin pin);

  // Lets go of everything.
  void clear();

  AheadStats stats() const;

 private:
  static constexpr uint32_t kStreamCount = 16;
  static constexpr uint64_t kSlackReads = 16;  // how far out of order, in lengths of a read
  static constexpr uint64_t kSpanMax = uint64_t{1} << 30;  // what is older fades
  static constexpr uint32_t kIdleMax = 256;  // reads of others before a stream lets go

  struct Stream {
    Uuid file_id;
    uint64_t generation = 0;
    uint64_t begin = 0;  // bytes: the stretch
    uint64_t end = 0;
    uint64_t asked_bytes = 0;  // of it, those asked for twice counted twice
    uint64_t longest = 0;    // read, of late
    uint64_t front = 0;      // where the sweep is
    uint64_t ahead_end = 0;  // what has been begun of it
    uint32_t read_count = 0;
    uint32_t serial = 0;  // 0: not in use
    uint32_t last_used = 0;
    uint32_t held_count = 0;
    uint64_t held_index[kAheadMax] = {};
    Pin held[kAheadMax];

    bool is_near(ByteRange range) const;
    bool is_dense() const { return read_count > 1 && asked_bytes >= (end - begin) / 2; }
    void move_front(ByteRange range);
    void extend(ByteRange range);
  };

  Stream* find(const Uuid& file_id, uint64_t generation, ByteRange range);
  Stream* begin_stream(const Uuid& file_id, uint64_t generation, ByteRange range);
  void pass(Stream& stream, uint64_t begin, uint64_t end);
  void let_go(Stream& stream);
  void let_go_of_idle();

  FutexLock lock_;  // over what follows
  uint32_t clock_ = 0;
  uint32_t last_serial_ = 0;
  Stream streams_[kStreamCount];

  // Relaxed: counts.
  std::atomic<uint64_t> fetched_{0};
  std::atomic<uint64_t> passed_{0};
  std::atomic<uint64_t> wasted_{0};
};

}  // namespace graphlane
