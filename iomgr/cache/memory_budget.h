// MemoryBudget: how much of the free memory each cache may take. Every share is decided here; callers
// name a use, give the free memory, and take the answer.
//
//   budget_of(use, room)           the limit of one use: a table of shares (memory_budget.cc)
//   fit_in_memory(sizes, room)     whether files that are read together stay in the page cache
//   MemoryBudget                   the limit of a cache of frames while free memory comes and goes
//   PageCacheShare                 the limit of prefetches into the page cache (page_cache_share.h)
//
// `room` is the free memory (memory_limit.h) plus what the use holds already.
//
// No I/O, no allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/result.h"
#include "iomgr/cache/steady_budget.h"

namespace graphlane {

// A budget that follows the free memory. Any other value is the user's own size, in bytes.
inline constexpr uint64_t kAutoBudget = UINT64_MAX;

enum class MemoryUse : uint8_t {
  // Frames in this process's memory. The rest is for memory that programs have allocated but not
  // touched, and for the kernel's read-ahead, because under a tight limit the kernel kills.
  kFrames,
  // Frames that the kernel may reclaim like page cache (mapped_cache.h).
  kReclaimableFrames,
  // Any frames at the start, until the free memory has lasted (steady_budget.h).
  kFirstFrames,
  // Frames with a size of the user's: less than that only where memory is really short.
  kGivenFrames,
  // Pages of the page cache that processes share. They evict others that programs have mapped.
  kSharedPages,
  // Prefetches into the page cache.
  kPrefetchedPages,
  // Files that stay in the page cache, while all files together do not fit.
  kKeptPages,
  // Pages that stay behind a sweep of files that do not fit. They cover the kernel's own read-ahead
  // of a few readers, each of which needs two windows of twice kKernelReadAhead: a sequential hint
  // doubles a window, and the kernel begins the next one before the current one is read.
  kPagesBehind,
  // The kernel's read-ahead of one stream.
  kKernelReadAhead,
  // Dirty pages of one mount, of the memory that the kernel allows all of them. An engine's vertex
  // files should stay in memory for an iteration, but must leave room: no dirty page can be reclaimed
  // before it was written.
  kDirtyPages,
  // Buffers: partitions, labels, vertex values, a map that is read at once.
  kBuffers,
  // Packed partitions. Only a margin stays free, because the kernel reclaims their pages.
  kPackedBuffers,
};

uint64_t budget_of(MemoryUse use, uint64_t room_bytes);

// How many copies of files that are read together stay in memory. The user's kDirect leaves no room
// for any, kBuffered for all.
enum class MemoryFit : uint8_t { kTwice, kOnce, kNot };
MemoryFit fit_in_memory(IoMode mode, uint64_t all_bytes, uint64_t available_bytes);

// The part of a cache's budget for prefetched frames: a twelfth, from `min_bytes` to 64 MiB, of a
// small budget at most a quarter. It is lost to kept frames.
uint64_t prefetch_budget_of(uint64_t budget_bytes, uint64_t min_bytes);
inline constexpr uint64_t kPrefetchBytesMax = uint64_t{64} << 20;

// How far one read may read on, and how far a scan of shared pages prefetches.
uint64_t read_on_budget_of(uint64_t budget_bytes);
uint64_t scan_budget_of(uint64_t budget_bytes);

// The budget of a cache of frames, some of which are kept, and others prefetched.
//
//   count_read() ── true: time to look ──► adjust(free memory, frames held) ── true ──► limits()
//
// A given budget is a limit for both. Without one, prefetched frames come out of the free memory.
//
// Threads: everything but start() is safe from any. Two concurrent calls may leave the result of
// either.
class MemoryBudget {
 public:
  struct Options {
    uint64_t given_bytes = kAutoBudget;
    bool reclaimable = false;
    uint64_t prefetch_bytes_min = 0;
  };
  struct Frames {
    uint64_t kept_bytes = 0;
    uint64_t prefetched_bytes = 0;
  };

  constexpr explicit MemoryBudget(uint64_t set_bytes)
      : set_bytes_(set_bytes), steady_(set_bytes / 4) {}

  // Call it first. ENOMEM: no room for one set of frames, and a smaller cache costs more than it
  // gains.
  Result<void> start(const Options& options, uint64_t available_bytes);

  // Whether the free memory matters. If not, the calls below take any value for it.
  bool depends_on_memory() const { return is_auto_ || !options_.reclaimable; }
  uint64_t bytes() const { return steady_.bytes(); }
  // The most that it can ever be.
  Frames most() const;
  // Limits of the frames now.
  Frames limits() const;

  // Counts bytes that were read from the cache or past it: also hits, because programs may come to
  // need memory while all reads hit. True: an eighth of the budget was read since adjust().
  bool count_read(uint64_t bytes);
  // Whether the limits changed. UINT64_MAX: the free memory is not known, and counts as enough.
  bool adjust(uint64_t available_bytes, const Frames& held);

  // Limits a given budget, within what start() took; needs adjust().
  void set_given(uint64_t bytes);
  // Something else fills the same memory: sweeps through the page cache, or another cache. The
  // kernel would then reclaim the frames in turn with those pages. So a reclaimable cache takes no
  // more than another one. Whether the limits changed.
  bool set_beside_page_cache(bool beside, uint64_t available_bytes, const Frames& held);
  bool is_beside_page_cache() const { return is_beside_page_cache_.load(kRelaxed); }
  // Prefetched frames are counted from now on. True: for the first time, and the limits changed.
  bool begin_prefetch();
  // The kernel has reclaimed frames. Until they are missed they count as held, so there is less room
  // than it seems: the next adjust() halves the budget at least.
  void count_reclaim() { has_reclaims_.store(true, kRelaxed); }
  // While paused all limits are 0, and adjust() does nothing.
  void set_paused(bool paused) { is_paused_.store(paused, kRelaxed); }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;  // estimates, and flags

  uint64_t most_of(uint64_t room_bytes) const;
  bool follow_memory(uint64_t available_bytes, const Frames& held);
  bool keep_given(uint64_t available_bytes, const Frames& held);
  uint64_t whole_frames(uint64_t bytes) const;

  // Constant after start().
  const uint64_t set_bytes_;
  bool is_auto_ = false;
  Options options_;
  uint64_t most_bytes_ = 0;

  SteadyBudget steady_;
  std::atomic<uint64_t> given_bytes_{0};
  std::atomic<uint64_t> unchecked_bytes_{0};  // read since the last adjust()
  std::atomic<bool> is_paused_{false};
  std::atomic<bool> is_beside_page_cache_{false};
  std::atomic<bool> has_prefetches_{false};
  std::atomic<bool> has_reclaims_{false};
};

}  // namespace graphlane
