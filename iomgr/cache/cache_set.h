// The cache's metadata, set by set. It is plain words without pointers, and all zeros is
// an empty cache.
//
//   CacheSet      | lock, clock, tags of 16 ways |   64 bytes
//   CacheHistory  | 256 frames that were evicted | 2048 bytes
//   CacheSlot     | word, key, age | × 8 … 16        64 bytes a frame
//
// A slot's word holds the fields that must change in one step:
//
//   63        32 31      20    19     18 17    16 15     0
//   |  version  |   zero   | doomed  |  0 | state |  pins |
//
//           reserve()            publish()             reserve(), resize()
//   empty ────────────► filling ───────────► valid ────────────────────────► empty
//                          │ abandon()                                         ▲
//                          └──────────────► failed ───── once unpinned ─────────┘
//
// A pin is taken without the lock, by compare-and-swap, and only while the word has the
// version that it had when the key was compared. The version changes when a frame is
// claimed for another key, before the key is written. So a pin always holds the frame
// that the caller asked for.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/futex.h"

namespace graphlane {

inline constexpr uint32_t kCacheWaysMax = 16;  // frames of a set
// Keys that a set remembers: enough for a sweep over a file of sixteen times the cache.
inline constexpr uint32_t kCacheHistoryMax = 256;

enum class FrameState : uint32_t { kEmpty = 0, kFilling = 1, kValid = 2, kFailed = 3 };

// The word of a slot, taken apart.
struct FrameWord {
  static constexpr uint64_t kPinsMask = 0xffff;
  static constexpr uint32_t kStateShift = 16;
  static constexpr uint64_t kDoomed = uint64_t{1} << 19;
  static constexpr uint32_t kVersionShift = 32;

  uint64_t bits = 0;

  static FrameWord make(FrameState state, uint32_t version, uint64_t pins) {
    return {uint64_t{version} << kVersionShift |
            uint64_t{static_cast<uint32_t>(state)} << kStateShift | pins};
  }
  // Empty, with the next version. Version 0 means memory that a fork has wiped.
  FrameWord claimed() const {
    return make(FrameState::kEmpty, version() == UINT32_MAX ? 1 : version() + 1, 0);
  }
  // From one state to a later one, by addition.
  static uint64_t step(FrameState from, FrameState to) {
    return uint64_t{static_cast<uint32_t>(to) - static_cast<uint32_t>(from)} << kStateShift;
  }
  uint64_t pins() const { return bits & kPinsMask; }
  FrameState state() const { return static_cast<FrameState>(bits >> kStateShift & 3); }
  bool doomed() const { return (bits & kDoomed) != 0; }
  uint32_t version() const { return static_cast<uint32_t>(bits >> kVersionShift); }
};

// One frame. Only the holder of its set's lock writes it. Exceptions: readers without the
// lock write `word`, `used` and `heat`, and the filler writes `outcome`.
struct alignas(64) CacheSlot {
  std::atomic<uint64_t> word;
  std::atomic<uint32_t> ended;    // counts fills that ended: what waiters sleep on
  std::atomic<uint32_t> outcome;  // valid: bytes; failed: an errno
  std::atomic<uint64_t> file_id[2];
  std::atomic<uint64_t> generation;
  std::atomic<uint64_t> frame_index;
  std::atomic<uint32_t> epoch;  // of the file, see FrameCache::drop()
  std::atomic<uint32_t> used;   // the set's clock when it was last asked for
  std::atomic<uint32_t> heat;   // hot-aware: accesses; scan-resistant: a FrameProtection

  // Acquire: later loads of this slot are at least as new as the word.
  FrameWord load() const { return {word.load(std::memory_order_acquire)}; }

  // Makes an unpinned frame unreachable. False if it is pinned. The lock is held.
  bool claim() {
    FrameWord now = load();
    do {
      if (now.pins() != 0) return false;
      // Acquire: earlier pin holders are done with the bytes.
    } while (!word.compare_exchange_weak(now.bits, now.claimed().bits, std::memory_order_acquire));
    return true;
  }
};
static_assert(sizeof(CacheSlot) == 64);

// Guarded by the lock. The atomic members are read without it.
struct alignas(64) CacheSet {
  FutexLock lock;
  std::atomic<uint32_t> clock;
  std::atomic<uint64_t> hits;
  std::atomic<uint64_t> tags[kCacheWaysMax / 4];  // four of 16 bits each
  // Bit i: way i has memory.
  uint16_t resident;
  // The history entry that the next eviction overwrites.
  uint8_t history_hand;
  // Ways on probation beyond the first.
  uint8_t probation_extra;
  // Whether a frame on probation hit since the clock was a multiple of the period.
  std::atomic<uint8_t> probation_hit;
  // The longest time between uses of protected frames, fading; 0: unknown.
  std::atomic<uint16_t> protected_reuse;
  // The clock when a frame last replaced one behind it in the file.
  uint32_t moved_up;
};
static_assert(sizeof(CacheSet) == 64);

// Recently evicted frames: a hash of the key, and `used` or `heat`.
struct alignas(64) CacheHistory {
  uint32_t key_hash[kCacheHistoryMax];  // 0: none
  uint32_t value[kCacheHistoryMax];
};

// Ways of a set are the bits of a word.
constexpr uint32_t bit(uint32_t way) { return 1u << way; }
inline uint32_t lowest(uint32_t ways) { return static_cast<uint32_t>(__builtin_ctz(ways)); }
inline uint32_t count_of(uint32_t ways) { return static_cast<uint32_t>(__builtin_popcount(ways)); }

// Compares four 16-bit tags at once: bit 15 is set in each that equals `tag`. The tag above
// a match may be reported falsely, so the caller compares keys too.
inline uint64_t equal_tags(uint64_t tags, uint16_t tag) {
  constexpr uint64_t kOnes = 0x0001'0001'0001'0001;
  const uint64_t differences = tags ^ (kOnes * tag);
  return (differences - kOnes) & ~differences & (kOnes << 15);
}

// References to all parts of one set.
struct SetView {
  uint32_t set_index;
  CacheSet& set;
  CacheHistory& history;
  CacheSlot* slots;    // way_count of them
  uint32_t way_count;  // 1 .. kCacheWaysMax; 8 .. in a cache of 8 frames and more
  uint32_t way_limit;  // how many of them may have memory: 0 .. way_count. Under the lock

  // The ways that may hold the tag, as bits.
  uint32_t ways_tagged(uint16_t tag) const {
    uint32_t ways = 0;
    for (uint32_t group = 0; group < kCacheWaysMax / 4; ++group) {
      // Relaxed: a tag that is seen too late is a miss, which the lock puts right.
      uint64_t equal = equal_tags(set.tags[group].load(std::memory_order_relaxed), tag);
      for (; equal != 0; equal &= equal - 1) {
        ways |= bit(group * 4 + static_cast<uint32_t>(__builtin_ctzll(equal)) / 16);
      }
    }
    return ways & ((1u << way_count) - 1);
  }
  void set_tag(uint32_t way, uint16_t tag) const {
    std::atomic<uint64_t>& group = set.tags[way / 4];
    const uint32_t shift = way % 4 * 16;
    const uint64_t others = group.load(std::memory_order_relaxed) & ~(uint64_t{0xffff} << shift);
    group.store(others | uint64_t{tag} << shift, std::memory_order_relaxed);
  }
  bool resident(uint32_t way) const { return (set.resident >> way & 1) != 0; }
  uint32_t resident_count() const { return count_of(set.resident); }
  // The subset of `ways` that passes the test.
  template <class Test>
  uint32_t ways_where(uint32_t ways, Test test) const {
    uint32_t found = 0;
    for (; ways != 0; ways &= ways - 1) {
      if (test(slots[lowest(ways)])) found |= bit(lowest(ways));
    }
    return found;
  }
};

}  // namespace graphlane
