// FrameCache: pieces of files in memory, in frames of one size (SAFS's set-associative
// cache, FlashGraph §3.1; hot-aware by MaiterStore §3.4).
//
//   key (file, generation, index) ── hash ──► set      its own lock, 8 to 16 ways
//                                              │
//        frames  |0|1|2| … |15|16| … |31|32| … ▼ …     given by the owner; a frame
//                 └── set 0 ──┘└─ set 1 ─┘             never moves
//
// One instance holds the extents that large reads want, another the 4 KiB pages of
// selective ones. The cache moves no bytes: the holder of a Fill reads the device.
//
//   if (Pin pin = cache.find(key)) { copy pin.bytes() }    a hit: no lock, no call
//   else switch ((r = cache.reserve(key)).kind) {
//
//     kHit:     copy r.pin.bytes()                         filled since find()
//     kFill:    read into r.fill.bytes(); then pin = r.fill.publish(n), or
//               r.fill.abandon(errno)
//     kWait:    pin = r.wait.wait(timeout)                 another thread reads it
//     kBypass:  read past the cache                        no frame is available
//   }
//
// Placement: consecutive frames of a file lie in consecutive sets, rotated by a hash of
// file and row. So a file as large as the cache fits, and strides spread. (It fits exactly
// if it has a multiple of 16 frames.) Sets drawn at random would overflow.
//
// Budget: never more frames have memory than it allows. A pinned frame that resize() should
// take is reclaimed when its last pin ends.
//
// Threads: everything but init() is safe from any thread. find() and the end of a Pin take no
// lock. reserve() takes the lock of one set. It answers kBypass when it cannot have the lock,
// as in a signal handler that interrupted the holder. Only wait() waits for a device. A thread
// must not wait while it holds a Fill that other threads may wait for.
// Forks: all-zero metadata is an empty cache. With MADV_WIPEONFORK on both memories a
// child starts with one; Pins that it inherited are no longer intact().
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "iomgr/base/result.h"
#include "iomgr/base/uuid.h"
#include "iomgr/cache/cache_policy.h"
#include "iomgr/cache/cache_set.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

inline constexpr uint64_t kFrameBytesMax = uint64_t{1} << 30;

// Is told when a frame's memory is reclaimed.
class FrameOwner {
 public:
  // The frame has no memory until it is filled again. Called with its set's lock held.
  virtual void on_reclaimed(uint32_t frame) = 0;

 protected:
  ~FrameOwner() = default;
};

struct CacheOptions {
  uint64_t frame_bytes = kBlockSize;  // a multiple of 4096, at most kFrameBytesMax
  CachePolicy policy = CachePolicy::kScanResistant;
  uint64_t budget_bytes = 0;    // as resize(); 0: all the memory given
  FrameOwner* owner = nullptr;  // outlives the cache
};

// Bytes frame_index * frame_bytes and on of a file, as they were in a generation.
struct FrameKey {
  Uuid file_id;
  uint64_t generation = 0;  // grows when the file changes: older frames are never found
  uint64_t frame_index = 0;
};

// Counts since init().
struct CacheStats {
  uint64_t hits = 0;
  uint64_t fills = 0;      // reserve() gave a frame to fill
  uint64_t waits = 0;      // another thread was filling the frame
  uint64_t rejected = 0;   // no frame was available: the caller read past the cache
  uint64_t failures = 0;   // fills that were abandoned
  uint64_t evictions = 0;  // without frames that were dropped or superseded
  uint64_t resident_bytes = 0;
  uint64_t misses() const { return fills + waits + rejected; }
};

class FrameCache;

// Keeps a frame as it is while this lives. Move-only. Hold it for a copy, not for long:
// a set with all frames pinned caches nothing.
class FrameHold {
 public:
  FrameHold() = default;
  FrameHold(FrameHold&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)),
        frame_(other.frame_),
        version_(other.version_) {}
  FrameHold& operator=(FrameHold&& other) noexcept;
  FrameHold(const FrameHold&) = delete;
  FrameHold& operator=(const FrameHold&) = delete;
  ~FrameHold() { release(); }

  explicit operator bool() const { return cache_ != nullptr; }
  // Its place in the memory given, in frames.
  uint32_t frame() const { return frame_; }
  // False only in a forked child that inherited the hold: its copied bytes are void.
  bool intact() const;
  void release();

 protected:
  friend class FrameCache;
  FrameHold(FrameCache* cache, uint32_t frame, uint32_t version)
      : cache_(cache), frame_(frame), version_(version) {}

  FrameCache* cache_ = nullptr;
  uint32_t frame_ = 0;
  uint32_t version_ = 0;
};

// A valid frame.
class Pin : public FrameHold {
 public:
  Pin() = default;
  // The published bytes; shorter than a frame where the file ends.
  std::span<const std::byte> bytes() const;

 private:
  friend class FrameCache;
  friend class Fill;
  friend class FrameWait;
  using FrameHold::FrameHold;
  explicit Pin(FrameHold&& hold) : FrameHold(std::move(hold)) {}
};

// A frame that only this holder may fill. The destructor abandons it with ECANCELED
// unless it was published or abandoned before.
class Fill : public FrameHold {
 public:
  Fill() = default;
  Fill(Fill&&) = default;
  Fill& operator=(Fill&& other) noexcept;
  ~Fill();

  std::span<std::byte> bytes() const;  // the whole frame
  // The first `valid_bytes` (0 .. frame_bytes) are the file's.
  Pin publish(uint64_t valid_bytes);
  // The fill failed: waiters get the errno (not 0), and the frame is empty again.
  void abandon(int error);

 private:
  friend class FrameCache;
  using FrameHold::FrameHold;
};

// A frame that another thread fills. The destructor does not wait.
class FrameWait : public FrameHold {
 public:
  FrameWait() = default;
  static constexpr uint64_t kForever = 0;
  // Blocks until the fill ends. Returns the filler's errno, or ETIMEDOUT.
  Result<Pin> wait(uint64_t timeout_ns = kForever);
  // Whether wait() would return at once.
  bool ended() const;

 private:
  friend class FrameCache;
  using FrameHold::FrameHold;
};

// Which frame a miss may evict (cache_policy.h).
enum class Admission {
  // Any unpinned frame.
  kAlways,
  // A frame that the policy does not protect: for callers that can read past the cache.
  kByPolicy,
  // As kByPolicy, and only if the policy protects the newcomer from then on.
  kToKeep,
  // As kByPolicy, for a prefetch. Without room it counts no miss.
  kAhead,
  // No frame: only a hit or a wait. Neither counts a miss.
  kNone,
};

// The answer of reserve(); the member of its kind is set.
struct Reservation {
  enum class Kind { kHit, kFill, kWait, kBypass };
  Kind kind = Kind::kBypass;
  Pin pin;
  Fill fill;
  FrameWait wait;
};

class FrameCache {
 public:
  FrameCache() = default;
  FrameCache(const FrameCache&) = delete;
  FrameCache& operator=(const FrameCache&) = delete;

  // How much metadata so many frames need: 196 to 328 bytes a frame, and 17 KiB.
  static size_t metadata_bytes(uint64_t frame_count);

  // `frames`: page-aligned; a rest smaller than a frame is unused; touched only when filled.
  // `metadata`: zeros, page-aligned, metadata_bytes() of them. Both outlive the cache.
  // EINVAL if one of these does not hold.
  Result<void> init(const CacheOptions& options, std::span<std::byte> frames,
                    std::span<std::byte> metadata);

  // Empty on a miss. Counts hits only: reserve() counts the miss.
  Pin find(const FrameKey& key);
  // Whether the frame is valid. Does not count as a use.
  bool contains(const FrameKey& key);
  Reservation reserve(const FrameKey& key, Admission admission = Admission::kAlways);

  // Invalidates all frames of the file, also those in flight, in O(1). (1 in 4096 other files
  // may lose its frames too.) Threads that wait already still get their frame.
  void drop(const Uuid& file_id);

  // The frame lost its bytes: find() misses from now on, and the last pin reclaims it.
  void forget(const Pin& pin);

  // Rounds down to whole frames, at most those given. Reclaims unpinned frames at once.
  // Returns an errno when the kernel refuses (EPERM: a memfd with F_SEAL_FUTURE_WRITE): the
  // frames are then invalid, yet still take memory.
  Result<void> resize(uint64_t budget_bytes);

  CacheStats stats() const;
  uint64_t frame_bytes() const { return frame_bytes_; }
  uint32_t frame_count() const { return frame_count_; }

 private:
  friend class FrameHold;
  friend class Pin;
  friend class Fill;
  friend class FrameWait;

  // A power of two. Files share epochs, as they do generations (server_protocol.h).
  static constexpr uint32_t kEpochCount = 4096;
  static constexpr uint32_t kCounterShards = 8;

  // Under the locks of every eighth set. Relaxed: they order nothing.
  struct alignas(64) Counters {
    std::atomic<uint64_t> fills;
    std::atomic<uint64_t> waits;
    std::atomic<uint64_t> rejected;
    std::atomic<uint64_t> failures;
    std::atomic<uint64_t> evictions;
    std::atomic<uint64_t> resident_frames;
  };
  struct Header {
    Counters counters[kCounterShards];
    std::atomic<uint32_t> epochs[kEpochCount];
  };

  // A key, and the set and tag that it maps to.
  struct Place {
    uint64_t file_id[2];
    uint64_t generation;
    uint64_t frame_index;
    uint32_t epoch;
    uint32_t set_index;
    uint32_t key_hash;  // not 0
    uint16_t tag() const { return static_cast<uint16_t>(key_hash >> 16); }
  };

  Place locate(const FrameKey& key) const;
  SetView view(uint32_t set_index) const;
  uint32_t first_frame(uint32_t set_index) const;
  uint32_t set_of(uint32_t frame) const;
  uint32_t way_limit(uint32_t set_index) const;
  Counters& counters(uint32_t set_index) const;
  std::atomic<uint32_t>& epoch_of(uint64_t file_id_low) const;

  bool dead(const CacheSlot& slot) const;
  uint32_t unpinned_ways(const SetView& set) const;

  Pin pin_valid(const Place& place);
  // Under the lock of the set.
  void reserve_locked(const SetView& set, const Place& place, Admission admission,
                      Reservation* reservation);
  bool join(const SetView& set, const Place& place, Reservation* reservation);
  bool find_room(const SetView& set, const Place& place, Admission admission, SetPolicy& policy,
                 uint32_t* way);
  bool has_room(const SetView& set, const Place& place, const SetPolicy& policy) const;
  uint32_t useless_ways(const SetView& set, const Place& place, uint32_t unpinned) const;
  bool evict(const SetView& set, uint32_t candidates, SetPolicy& policy, uint32_t* way);
  void begin_fill(const SetView& set, const Place& place, uint32_t way);
  int shrink(const SetView& set);
  uint32_t evict_some(const SetView& set, uint32_t candidates, uint32_t* excess);
  uint32_t doom(const SetView& set, uint32_t ways, uint32_t excess);
  int reclaim(const SetView& set, uint32_t ways);

  void retire(uint32_t frame);
  void end_fill(uint32_t frame, FrameState state, uint32_t outcome);
  void unpin(uint32_t frame, uint32_t version);

  // Constant after init().
  CachePolicy policy_ = CachePolicy::kLru;
  uint64_t frame_bytes_ = 0;
  uint32_t frame_count_ = 0;
  uint32_t set_count_ = 0;
  uint32_t ways_ = 0;  // of a set; one more in the first larger_sets_
  uint32_t larger_sets_ = 0;
  std::byte* frames_ = nullptr;
  FrameOwner* owner_ = nullptr;
  // Into the metadata.
  Header* header_ = nullptr;
  CacheSet* sets_ = nullptr;
  CacheHistory* histories_ = nullptr;
  CacheSlot* slots_ = nullptr;

  std::atomic<uint32_t> budget_frames_{0};
};

}  // namespace graphlane
