// ReadOrder: the order in which an address space is read, and what comes next
// (CSMqGraph §3.3; the next sweep of an engine reads what the last one did).
//
//   reads   1 2 3 4 │ 7 8 9 │ 1 2 3 . . .
//   runs    [1,  5)  [7,10)  [1, 4)          a read that adjoins a recent run extends it,
//                                            because threads come a little out of order
//
//   next              after 3, last time: 4, then 7 8 9, then 1 2 3;
//                     what other readers have read since is left out
//
// A prediction lies within a scope: of one file, or of all. It is, in this order:
//   - replay: what followed when this place was last read, skips and the next sweep included
//   - stride: when the last runs of the scope have equal lengths and distances
//   - sequential: the bytes behind the read
// The last two are guesses at what was never read. The caller allows them.
//
// Threads: not thread-safe; the owner has a lock.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>
#include <span>

#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class ReadOrder {
 public:
  // Each allows those before it. kContinued: the bytes behind the read, if at least its length was
  // read directly before it. kSequential: in any case.
  enum class Guess : uint8_t { kNone, kStride, kContinued, kSequential };

  // Adds a read (not empty) when it arrives. It may extend a recent run of `scope`: of its file, where
  // reads of other files do not end a run; else of all files.
  void add(ByteRange range, ByteRange scope);

  // Predicts what follows the added `range`, into `next`: in order, none empty, all within `scope`,
  // as many as `next` has room for. Returns their number.
  uint32_t predict(ByteRange range, Guess guess, ByteRange scope, std::span<ByteRange> next) const;

  void clear() { count_ = 0; }

 private:
  // More than GraphChi's windows: one of each of 48 shards in each of 48 intervals.
  static constexpr uint32_t kRunsMax = 4096;
  static constexpr uint32_t kRecentRuns = 8;      // a read may still adjoin so many
  static constexpr uint32_t kLookBackRuns = 512;  // among these
  static constexpr uint64_t kGapMax = 1 << 20;    // bytes between what adjoins
  static constexpr uint64_t kPieceMax = 2 << 20;  // reads up to this are pieces of larger ones
  static constexpr uint32_t kStrideRuns = 4;      // make a stride
  static constexpr uint64_t kSlackReads = 16;     // how far threads are apart, in reads

  struct Run {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t begun_at = 0;  // on the clock
    uint64_t extended_at = 0;
  };
  struct Recent {
    uint32_t count = 0;
    uint32_t ages[kRecentRuns] = {};
    const uint32_t* begin() const { return ages; }
    const uint32_t* end() const { return ages + count; }
  };
  class Forecast;

  // By age; 0 is the oldest.
  const Run& run(uint32_t age) const { return runs_[(first_ + age) % kRunsMax]; }
  Run& run(uint32_t age) { return runs_[(first_ + age) % kRunsMax]; }
  static bool overlaps(ByteRange scope, const Run& run) {
    return run.begin < scope.end() && run.end > scope.offset;
  }

  static bool is_piece(ByteRange range) { return range.length_bytes <= kPieceMax; }
  static uint64_t gap_max(ByteRange range);
  static bool adjoins(const Run& lower, const Run& upper, uint64_t gap);
  bool extend(uint32_t age, ByteRange range);
  Recent recent_runs(ByteRange scope) const;
  void join(uint32_t age, const Recent& recent, uint64_t gap);
  void remove(uint32_t age);
  void push(ByteRange range);
  bool find_front(ByteRange range, uint32_t* age) const;
  void replay(uint32_t front, Forecast& forecast) const;
  void stride(uint32_t front, Forecast& forecast) const;

  uint64_t clock_ = 0;  // reads
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  Run runs_[kRunsMax];
};

}  // namespace graphlane
