// FrameCache: pieces of files in memory, in frames of one size (SAFS's set-associative
// cache, FlashGraph §3.1; hot-aware by MaiterStore §3.4).
//
//   key (file, generation, index) ── hash ──► set      its own lock, 8 to 16 ways
//                                              │
//        frames  |0|1|2| … |15|16| … |31|32| … ▼ …     given by the owner; a frame
//                 └── set 0 ──┘└─ set 1 ─┘             never moves
//
// One instance holds the extents that large reads want, another the 4 KiB pages of
// selective ones. The cache moves no bytes: whoever gets a Fill reads the device.
//
//   if (Pin pin = cache.find(key)) { copy pin.bytes() }    a hit: no lock, no call
//   else switch ((r = cache.reserve(key)).kind) {
//     kHit:   copy r.pin.bytes()                           somebody was faster
//     kFill:  read into r.fill.bytes(); then pin = r.fill.publish(n), or
//             r.fill.abandon(errno)
//     kWait:  pin = r.wait.wait(timeout)                   somebody else reads it
//     kPass:  read past the cache                          no frame is free, or to be had
//   }
//
// Placement: consecutive frames of a file lie in consecutive sets, turned by a hash of
// file and row. So a file that is as large as the cache fits (exactly, if that has a
// multiple of 16 frames), which it would not if sets were drawn at random; and strides
// spread.
//
// Budget: never more frames have memory than it allows. What resize() cannot take
// because it is pinned, it takes when the last pin goes.
//
// Threads: everything but init() is safe from any thread. find() and the end of a Pin
// take no lock; reserve() takes that of one set, and answers kPass when it cannot have it,
// as in a signal handler that has interrupted its holder. Nobody waits for a device but in
// wait(). No thread may wait while it has a Fill that others may wait for.
// Forks: all-zero metadata is an empty cache. With MADV_WIPEONFORK on both memories a
// child starts with one; Pins that it has inherited are no longer intact().
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

// Who wants to know of memory that is given back.
class FrameOwner {
 public:
  // The frame has none from now on, until it is filled again. With the lock of its set.
  virtual void given_back(uint32_t frame) = 0;

 protected:
  ~FrameOwner() = default;
};

struct CacheOptions {
  uint64_t frame_bytes = kBlockSize;  // a multiple of 4096, at most kFrameBytesMax
  CachePolicy policy = CachePolicy::kScanResistant;
  uint64_t budget_bytes = 0;          // as resize(); 0: all the memory given
  FrameOwner* owner = nullptr;        // outlives the cache
};

// Bytes frame_index * frame_bytes and on of a file, as they were in a generation.
struct FrameKey {
  Uuid file_id;
  uint64_t generation = 0;  // grows when the file changes: older frames are never found
  uint64_t frame_index = 0;
};

// Since init().
struct CacheStats {
  uint64_t hits = 0;
  uint64_t fills = 0;      // reserve() gave a frame to fill
  uint64_t waits = 0;      // … somebody else was filling it
  uint64_t refused = 0;     // … had none: the caller read past the cache
  uint64_t failures = 0;   // fills that were abandoned
  uint64_t evictions = 0;  // not of what was dropped or superseded
  uint64_t resident_bytes = 0;
  uint64_t misses() const { return fills + waits + refused; }
};

class FrameCache;

// A frame that stays what it is while this lives. Move-only; to be held for a copy, not
// for long: a set whose frames are all pinned caches nothing.
class FrameHold {
 public:
  FrameHold() = default;
  FrameHold(FrameHold&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)), frame_(other.frame_),
        version_(other.version_) {}
  FrameHold& operator=(FrameHold&& other) noexcept;
  FrameHold(const FrameHold&) = delete;
  FrameHold& operator=(const FrameHold&) = delete;
  ~FrameHold() { release(); }

  explicit operator bool() const { return cache_ != nullptr; }
  // Its place in the memory given, in frames.
  uint32_t frame() const { return frame_; }
  // False only in a forked child that has inherited the hold: what it has copied is void.
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
  // What was published; shorter than a frame where the file ends.
  std::span<const std::byte> bytes() const;

 private:
  friend class FrameCache;
  friend class Fill;
  friend class FrameWait;
  using FrameHold::FrameHold;
  explicit Pin(FrameHold&& hold) : FrameHold(std::move(hold)) {}
};

// A frame that is to be filled, by this holder alone. One that ends in no other way is
// abandoned with ECANCELED.
class Fill : public FrameHold {
 public:
  Fill() = default;
  Fill(Fill&&) = default;
  Fill& operator=(Fill&& other) noexcept;
  ~Fill();

  std::span<std::byte> bytes() const;  // the whole frame
  // The first `valid_bytes` of it, 0 .. frame_bytes, are the file's.
  Pin publish(uint64_t valid_bytes);
  // It could not be filled: waiters get the errno (not 0), the frame is empty again.
  void abandon(int error);

 private:
  friend class FrameCache;
  using FrameHold::FrameHold;
};

// A frame that somebody else fills. Ending it waits for nothing.
class FrameWait : public FrameHold {
 public:
  FrameWait() = default;
  static constexpr uint64_t kForever = 0;
  // Blocks until the fill has ended. The filler's errno; ETIMEDOUT: still not.
  Result<Pin> wait(uint64_t timeout_ns = kForever);
  // Whether wait() would wait no longer.
  bool ended() const;

 private:
  friend class FrameCache;
  using FrameHold::FrameHold;
};

// Which frame a miss may take (cache_policy.h).
enum class Admission {
  kAlways,    // any that nobody pins
  kByPolicy,  // one that the policy does not protect: who can read past the cache
  kToKeep,    // the same, and only if the policy protects the newcomer from then on
  kAhead,     // the same for what nobody has asked for yet: no miss if there is none
  kNone,      // none: only what is there, or on its way, and no miss if it is not
};

// What reserve() answers; the member of its kind is set.
struct Reservation {
  enum class Kind { kHit, kFill, kWait, kPass };
  Kind kind = Kind::kPass;
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

  // `frames`: page-aligned, whole frames (what is over is left alone), touched only when
  // filled. `metadata`: zeros, page-aligned, metadata_bytes() of them. Both outlive the
  // cache. EINVAL: none of this.
  Result<void> init(const CacheOptions& options, std::span<std::byte> frames,
                    std::span<std::byte> metadata);

  // Empty on a miss, which reserve() counts.
  Pin find(const FrameKey& key);
  // Whether it is there. No use of it.
  bool contains(const FrameKey& key);
  Reservation reserve(const FrameKey& key, Admission admission = Admission::kAlways);

  // No frame of the file that was there, or was being filled, is found again; in O(1).
  // (One in 4096 other files may lose theirs too.) Who waits already still gets it.
  void drop(const Uuid& file_id);

  // The frame's bytes have gone: nobody finds it from now on, and its last pin gives it back.
  void forget(const Pin& pin);

  // Whole frames, at most those given. Takes what is not pinned at once, and gives its
  // memory back. An errno when the kernel would not have it (EPERM: a memfd with
  // F_SEAL_FUTURE_WRITE): the frames are forgotten, yet still take memory.
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
    std::atomic<uint64_t> refused;
    std::atomic<uint64_t> failures;
    std::atomic<uint64_t> evictions;
    std::atomic<uint64_t> resident_frames;
  };
  struct Header {
    Counters counters[kCounterShards];
    std::atomic<uint32_t> epochs[kEpochCount];
  };

  // A key, and where it belongs.
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
  bool find_room(const SetView& set, const Place& place, Admission admission,
                 SetPolicy& policy, uint32_t* way);
  bool has_room(const SetView& set, const Place& place, const SetPolicy& policy) const;
  uint32_t useless_ways(const SetView& set, const Place& place, uint32_t unpinned) const;
  bool evict(const SetView& set, uint32_t candidates, SetPolicy& policy, uint32_t* way);
  void begin_fill(const SetView& set, const Place& place, uint32_t way);
  int shrink(const SetView& set);
  uint32_t evict_some(const SetView& set, uint32_t candidates, uint32_t* excess);
  uint32_t doom(const SetView& set, uint32_t ways, uint32_t excess);
  int give_back(const SetView& set, uint32_t ways);

  void retire(uint32_t frame);
  void end_fill(uint32_t frame, FrameState state, uint32_t outcome);
  void unpin(uint32_t frame, uint32_t version);

  // Constant after init().
  CachePolicy policy_ = CachePolicy::kLru;
  uint64_t frame_bytes_ = 0;
  uint32_t frame_count_ = 0;
  uint32_t set_count_ = 0;
  uint32_t ways_ = 0;           // of a set; one more in the first larger_sets_
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
