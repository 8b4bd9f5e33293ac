// SequencePredictor: in which order a program reads its files, one after the other, and what it will
// therefore read next (CSMqGraph §3.3).
//
//   files     A ████  B ████  C ████  A ████ . . .     GraphChi's shards, each sweep anew
//   next                                     B, then C
//
// What an engine keeps in many files, of which each is short, it also sweeps in the same order
// again and again. So all files are one long one here, every file far behind the one before it,
// and one order (read_order.h) tells what followed when this place was read before. In a sweep that
// is the first, what lies behind the reads of a file that go on one after the other, or in strides.
//
// Nothing is read here: who asks begins what is told, where it may lie until it is
// wanted. What was told is told once, and judged: who is wrong more often than right is
// told nothing for a while.
//
// Threads: everything is safe from any thread, under one lock that is held for a scan of
// the order; who cannot have it, in a signal handler, is told nothing.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/base/futex.h"
#include "iomgr/base/uuid.h"
#include "iomgr/read/read_order.h"

namespace graphlane {

// The kernel is to bring the range into the page cache of the parts, as far as it is not there:
// begun on all devices at once, and not waited for. `parts` are open through it. Returns how
// many bytes were missing.
uint64_t begin_in_page_cache(const StripeMap& map, std::span<const int> parts, ByteRange range);
// It need not keep it there.
void drop_from_page_cache(const StripeMap& map, std::span<const int> parts, ByteRange range);

// How much of the page cache something may take: no more than the memory that is left has room for.
// A program that takes and gives back memory between its reads leaves less than these see;
// then what was to be there has gone when it is wanted, and the share shrinks.
//
// Threads: everything is safe from any. Relaxed throughout: it is a measure.
class PageCacheShare {
 public:
  static constexpr uint64_t kMin = uint64_t{4} << 20;

  uint64_t bytes() const;
  void set_most(uint64_t bytes);
  // So much of it was wanted now, and so much of that was missing.
  void came(uint64_t wanted_bytes, uint64_t missing_bytes);

 private:
  static constexpr uint64_t kLossShare = 8;  // more of it is too much
  static constexpr uint64_t kGrowthShare = 16;

  std::atomic<uint64_t> most_bytes_{0};
  std::atomic<uint64_t> bytes_{UINT64_MAX / 4};
};

// What was told, and is begun in the page cache.
struct NextStats {
  uint64_t begun_bytes = 0;
  uint64_t used_bytes = 0;    // read since
  uint64_t wasted_bytes = 0;  // nobody came for them
};

// As for_each_counter() of extent_cache.h.
template <class Visit>
void for_each_counter(const NextStats& stats, Visit visit) {
  visit("begun_bytes", "bytes begun", stats.begun_bytes);
  visit("used_bytes", "of them read", stats.used_bytes);
  visit("wasted_bytes", "for nothing", stats.wasted_bytes);
}

class SequencePredictor {
 public:
  // Less than this is no step of a sweep.
  static constexpr uint64_t kReadMin = 256 << 10;

  // For who begins what is told, in the page cache.
  static constexpr uint32_t kNextMax = 8;
  // Of the memory that is left, looked at whenever so much has been read.
  static constexpr uint64_t kAheadShare = 4;
  static constexpr uint64_t kLookBytes = uint64_t{32} << 20;
  // More than the next read gains nothing, and may have gone when its turn comes.
  static constexpr uint64_t kAheadEnough = uint64_t{16} << 20;

  struct Next {
    Uuid file_id;
    ByteRange range;  // may end beyond the file
  };

  // A read, not empty, when it is asked for. Returns how many bytes of it were told.
  uint64_t arrive(const Uuid& file_id, ByteRange range);

  // It has its bytes: what is wanted next, as far as that was not told yet, `bytes_max` ahead of
  // the program at most. Returns how many. `size_bytes`: of the file, for guesses at what was
  // never read; 0: none.
  uint32_t expect(const Uuid& file_id, ByteRange range, uint64_t size_bytes, uint64_t bytes_max,
                  std::span<Next> next);

  NextStats stats() const;

 private:
  static constexpr uint32_t kFileCount = 256;
  static constexpr uint32_t kToldMax = 64;
  static constexpr uint32_t kRangesMax = 16;  // looked at a time
  static constexpr uint64_t kFileSpan = uint64_t{1} << 44;  // bytes from a file to the next one
  static constexpr uint64_t kJudgedBytes = uint64_t{32} << 20;
  static constexpr uint64_t kPauseBytes = uint64_t{512} << 20;
  static constexpr uint64_t kPatienceBytes = uint64_t{128} << 20;
  // How much of what was told before it may be read after it: by threads. What is not read by
  // then was passed over, or had been in the reader's memory (of a mount's, the kernel's).
  static constexpr uint64_t kLateMax = 4;

  struct File {
    Uuid file_id;
    uint64_t base = 0;  // where it begins among all; 0: unused
    uint32_t last_used = 0;
  };
  // Not read yet, in the order of the telling.
  struct Told {
    ByteRange range;
    uint64_t at = 0;  // by the clock
    uint64_t number = 0;
  };

  const File& use(const Uuid& file_id);
  const File* at(uint64_t place) const;
  uint32_t follow(ByteRange range, bool guesses, std::span<ByteRange> next) const;
  uint64_t come_for(ByteRange range);
  void give_up_late();
  void give_up_first();
  void judge();
  uint64_t told_bytes() const;
  bool was_told(ByteRange* range) const;
  void tell(ByteRange range);
  void remove_told(uint32_t index);

  FutexLock lock_;  // over what follows
  uint64_t clock_ = 0;  // bytes read
  uint64_t paused_until_ = 0;
  uint64_t right_bytes_ = 0;  // of what was told, of late
  uint64_t wrong_bytes_ = 0;
  uint32_t use_count_ = 0;
  uint32_t told_count_ = 0;
  uint64_t last_base_ = 0;
  uint64_t last_number_ = 0;
  Told told_[kToldMax];
  LongReadOrder order_;
  File files_[kFileCount];

  // Relaxed: counts.
  std::atomic<uint64_t> begun_bytes_{0};
  std::atomic<uint64_t> used_bytes_{0};
  std::atomic<uint64_t> wasted_bytes_{0};
};

}  // namespace graphlane
