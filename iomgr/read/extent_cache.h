// ExtentCache: reads of striped files past the page cache, through frames of 1 MiB in this
// process's memory.
//
//   read(range) ──► hit:       copies the frame
//
//               ──► in flight: waits for the thread that fills it (single flight)
//
//               ──► miss:      one request for all; the engine merges its segments into one
//                              I/O per device
//
//               ──► prefetch:  what the reader will need next (prefetch_tracker.h), started
//                              without waiting on any idle device (read_ahead.h). Without
//                              asynchronous I/O a small read of a stream (pattern_detector.h)
//                              fetches more instead.
//
// A miss is read into a frame if the policy will keep it, or if the caller's buffer or offset
// does not fit direct I/O. Otherwise it is read straight into the caller's buffer. So small,
// unaligned and concurrent requests reach the devices as large aligned ones. Frames that the
// policy keeps hit in the next sweep.
//
// Budget: memory_budget.h. A given budget shrinks until 32 MiB stay free, unless the cache is
// reclaimable. Without one it follows the free memory of the machine and the memory cgroup.
//
//   ExtentReader    one request: hits, fetches, waits
//   KeptFrames      frames that the policy keeps, packed where that is worth it
//   ReadAhead       prefetched frames, and PrefetchTracker: which are worth it
//   MemoryBudget    how much memory both may take
//
// Threads: read() from any, but not from a signal handler that interrupted one. Not
// across fork(): a child must not use it (cache.h).
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "iomgr/base/counter.h"
#include "iomgr/base/futex.h"
#include "iomgr/cache/kept_frames.h"
#include "iomgr/cache/memory_budget.h"
#include "iomgr/io/engine.h"
#include "iomgr/read/convoy_scheduler.h"
#include "iomgr/read/extent_file.h"
#include "iomgr/read/extent_reader.h"
#include "iomgr/read/pattern/pattern_detector.h"
#include "iomgr/read/prefetch_tracker.h"
#include "iomgr/read/read_ahead.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

struct ExtentCacheOptions {
  uint64_t budget_bytes = kAutoBudget;
  CachePolicy policy = CachePolicy::kScanResistant;
  bool reclaimable = false;
  // For disks, which seek between readers: readers in turn wait for the leader.
  bool turns_wait = false;
  // The least memory for prefetched frames (of a small cache a quarter). Reads in turn need more
  // on a disk, because all their I/O in flight is prefetched. A large read has its own buffer.
  uint64_t ahead_min_bytes = uint64_t{10} << 20;
  // Packs the frames, if the file's first frames show that it is worth it (word_packing.h).
  bool packs = true;
  // The next two are switched off only to measure what they gain.
  bool keeps = true;  // keeps what was read; unaligned buffers always use frames
  bool reads_ahead = true;
  const char* memory_root = "";  // the root of /proc and /sys (memory_limit.h)
};

// "auto" or a size; EINVAL or ERANGE for other text.
Result<uint64_t> parse_budget(std::string_view text);

struct ExtentCacheStats {
  CacheStats frames;
  AheadStats prefetched;
  uint64_t hit_bytes = 0;         // hits, also on frames in flight
  uint64_t fetched_bytes = 0;     // read into frames, also by prefetch
  uint64_t bypassed_bytes = 0;    // read without a frame
  uint64_t reclaimed_frames = 0;  // hits on frames that the kernel had reclaimed
  uint64_t prefetch_bytes = 0;    // memory of prefetched frames
  uint64_t budget_bytes = 0;
};

// How many reads the cache saved, and its memory.
template <class Visit>
void for_each_counter(const ExtentCacheStats& stats, Visit visit) {
  using Name = CounterName;
  visit(Name{"hit_bytes", "bytes hit", "Bytes that hit."}, stats.hit_bytes);
  visit(Name{"fetched_bytes", "bytes fetched", "Bytes read into the cache."}, stats.fetched_bytes);
  visit(Name{"bypassed_bytes", "bytes bypassed", "Bytes read past the cache."},
        stats.bypassed_bytes);
  visit(Name{"prefetched_frames", "MiB prefetched", "MiB prefetched."}, stats.prefetched.fetched);
  visit(Name{"prefetched_used_frames", "used", "MiB prefetched and used."}, stats.prefetched.used);
  visit(Name{"prefetched_unused_frames", "unused", "MiB prefetched, unused."},
        stats.prefetched.unused);
  visit(Name{"evictions", "evictions", "Frames that were replaced."}, stats.frames.evictions);
  visit(Name{"reclaimed_frames", "MiB reclaimed by the kernel", "MiB reclaimed by the kernel."},
        stats.reclaimed_frames);
  visit(Name{"resident_bytes", "bytes in use", "Memory in use.", true},
        stats.frames.resident_bytes);
  visit(Name{"prefetch_bytes", "bytes for prefetch", "Memory of prefetched frames.", true},
        stats.prefetch_bytes);
  visit(Name{"budget_bytes", "allowed", "Memory that may be used.", true}, stats.budget_bytes);
}

class ExtentCache {
 public:
  ExtentCache() = default;
  ~ExtentCache() { prefetches_.clear(); }
  ExtentCache(const ExtentCache&) = delete;
  ExtentCache& operator=(const ExtentCache&) = delete;

  // ENOMEM: no room for even a few frames. Then, and before, read() declines everything.
  Result<void> start(const ExtentCacheOptions& options);

  // Reads the range into `buffer`. Returns the bytes read, fewer than asked only at the end of
  // the file. Returns nothing when the caller must read otherwise: for a small read of no
  // stream, for a large one into a buffer not aligned as the file is, without memory, and after
  // a device error. (The error may be next to the range; the other way will tell.)
  std::optional<size_t> read(const ExtentFile& file, ByteRange range, void* buffer,
                             IoEngine& engine);

  // As read(), for one of several parts of a larger read that are requested at the same time.
  // The devices get them together. So it does not prefetch or wait for another part's frame, and
  // uses a frame only where the policy keeps it.
  std::optional<size_t> read_part(const ExtentFile& file, ByteRange range, void* buffer,
                                  IoEngine& engine);

  // As read(), for one part of a larger read that this thread requests part by part
  // (convoy_scheduler.h). Starts the prefetch of the following parts before it waits.
  std::optional<size_t> read_in_turn(const ExtentFile& file, uint32_t thread, ByteRange range,
                                     void* buffer, IoEngine& engine);

  // The range will be read soon. Prefetches it as far as the memory goes, if the engine can.
  // The rest follows as the range is read.
  void will_need(const ExtentFile& file, ByteRange range, IoEngine& engine);

  // Limits the memory in use, within what start() was given.
  void set_budget(uint64_t bytes);
  // Adjusts the budget to the free memory.
  void adjust_budget();
  // Whether something else fills the same memory (memory_budget.h). False at first.
  void set_beside_page_cache(bool beside);
  // Reclaims all frames that no thread reads; the budget stays.
  void clear();
  // Ends all prefetches, then does as clear(). Takes no memory until resume().
  void pause(IoEngine& engine);
  void resume();

  ExtentCacheStats stats() const;

 private:
  // One read, as its prefetches see it.
  struct Step {
    const ExtentFile& file;
    IoEngine& engine;
    std::optional<ByteRange> range;  // the part of it that is a step of a sweep
    bool is_stream = false;
    const ConvoyScheduler::Turn* turn = nullptr;  // set by read_in_turn()
  };
  class WhileReading;

  std::optional<size_t> read_step(const ExtentFile& file, ByteRange range, void* buffer,
                                  IoEngine& engine, const ConvoyScheduler::Turn* turn);
  void begin_ahead(const Step& step, bool urgent);
  void begin_ahead(const ExtentFile& file, const PrefetchTracker::Forecast& forecast,
                   DeviceSet devices, IoEngine& engine);
  uint64_t fetch_end(const ExtentFile& file, ByteRange range) const;
  void count_read(uint64_t bytes);
  uint64_t available_bytes() const;
  MemoryBudget::Frames held() const;
  void apply_budget();
  void limit_frames(const MemoryBudget::Frames& limits);

  // Constant after start().
  bool started_ = false;
  bool reads_ahead_ = true;
  uint64_t turn_reach_ = 0;
  const char* memory_root_ = "";

  MemoryBudget budget_{kCacheWaysMax * kExtentFrameBytes};
  FutexLock budget_lock_;  // held while the limits are applied
  KeptFrames kept_{kExtentFrameBytes};
  PatternDetector patterns_{PatternDetector::RunEnd::kInFile};
  PrefetchTracker prefetches_{patterns_};
  ConvoyScheduler convoys_;
  ReadAhead ahead_;
  ExtentReader reader_{kept_, ahead_, prefetches_, budget_};
};

}  // namespace graphlane
