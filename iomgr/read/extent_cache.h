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
//                              asynchronous I/O a small read of a stream (stream_table.h)
//                              fetches more instead.
//
// A miss is read into a frame if the policy will keep it, or if the caller's buffer or offset
// does not fit direct I/O. Otherwise it is read straight into the caller's buffer. So small,
// unaligned and concurrent requests reach the devices as large aligned ones. Frames that the
// policy keeps hit in the next sweep.
//
// Frames are packed (word_packing.h) once a sampled frame shows that it is worth it.
//
// Budget: at most the given bytes. A given budget shrinks until 32 MiB stay free, unless the
// cache is reclaimable. Without a given budget it follows the free memory of the machine and
// the memory cgroup. It is checked whenever an eighth of it has been read:
//   - A reclaimable cache (mapped_cache.h) starts with half of the free memory. Once that has
//     lasted (steady_budget.h) it takes all but an eighth, at least 16 MiB. The kernel may
//     reclaim its frames like page cache.
//   - Any other cache takes half of the memory beyond 128 MiB. The rest is for memory that
//     programs have allocated but not touched, and for the kernel's read-ahead, because under a
//     tight limit the kernel kills.
// Prefetched frames take a twelfth of it, from ahead_min_bytes to 64 MiB (of a small budget a
// quarter), and only once there is a prefetch. With a given budget they are part of it.
// Otherwise they come out of the free memory.
//
// Threads: read() from any, but not from a signal handler that interrupted one. Not
// across fork(): a child must not use it (cache.h).
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "iomgr/base/futex.h"
#include "iomgr/cache/mapped_cache.h"
#include "iomgr/cache/steady_budget.h"
#include "iomgr/io/engine.h"
#include "iomgr/read/convoy_scheduler.h"
#include "iomgr/read/extent_file.h"
#include "iomgr/read/prefetch_tracker.h"
#include "iomgr/read/read_ahead.h"
#include "iomgr/read/stream_table.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

struct ExtentCacheOptions {
  // Bytes of memory. kAutoBudget: follows the free memory.
  static constexpr uint64_t kAutoBudget = UINT64_MAX;
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
  AheadStats ahead;
  uint64_t hit_bytes = 0;         // hits, also on frames in flight
  uint64_t fetched_bytes = 0;     // read into frames, also by prefetch
  uint64_t bypassed_bytes = 0;    // read without a frame
  uint64_t reclaimed_frames = 0;  // hits on frames that the kernel had reclaimed
  uint64_t ahead_bytes = 0;       // memory of prefetched frames
  uint64_t budget_bytes = 0;
};

// The counters that a user sees: how many reads the cache saved, and its memory.
// visit("hit_bytes", "bytes hit", 4096), and so on.
template <class Visit>
void for_each_counter(const ExtentCacheStats& stats, Visit visit) {
  visit("hit_bytes", "bytes hit", stats.hit_bytes);
  visit("fetched_bytes", "bytes fetched", stats.fetched_bytes);
  visit("bypassed_bytes", "bytes bypassed", stats.bypassed_bytes);
  visit("ahead_frames", "MiB prefetched", stats.ahead.fetched);
  visit("ahead_used", "used", stats.ahead.used);
  visit("ahead_wasted", "unused", stats.ahead.unused);
  visit("evictions", "evictions", stats.frames.evictions);
  visit("reclaimed_frames", "MiB reclaimed by the kernel", stats.reclaimed_frames);
  visit("resident_bytes", "bytes in use", stats.frames.resident_bytes);
  visit("ahead_bytes", "bytes for prefetch", stats.ahead_bytes);
  visit("budget_bytes", "allowed", stats.budget_bytes);
}

class ExtentCache {
 public:
  ExtentCache() = default;
  ~ExtentCache() { table_.clear(); }
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
  // Whether something else fills the same memory: sweeps through the page cache, or another
  // cache. The kernel would then reclaim the frames in turn with those pages. So a reclaimable
  // cache takes no more than another one. False at first.
  void set_beside_page_cache(bool beside);
  // Reclaims all frames that no thread reads; the budget stays.
  void clear();
  // Ends all prefetches, then does as clear(). Takes no memory until resume().
  void pause(IoEngine& engine);
  void resume();

  ExtentCacheStats stats() const;

 private:
  // A smaller cache costs more than it gains.
  static constexpr uint64_t kSetBytes = kCacheWaysMax * kExtentFrameBytes;
  static constexpr uint64_t kGrowthMin = kSetBytes / 4;  // of a budget that follows the memory
  // Frames of one request to the devices. Batches are members, because a thread's stack may have
  // only 16 KiB.
  static constexpr uint32_t kBatchMax = 64;
  static constexpr uint32_t kBatchCount = 32;
  struct Batch {
    std::atomic<bool> taken{false};
    uint32_t piece_count = 0;
    uint32_t wait_count = 0;
    uint32_t late_count = 0;
    Piece pieces[kBatchMax];  // the request to the devices
    Fill fills[kBatchMax];    // the frame of a piece; empty: the caller's buffer
    FrameWait waits[kBatchMax];
    uint64_t wait_index[kBatchMax];
    bool wait_ahead[kBatchMax];  // whether it is a prefetched frame
    Piece late[kBatchMax];       // pieces without a frame, perhaps unaligned
    void add_late(const Piece& piece);
    void add_wait(uint64_t frame_index, Reservation& reservation, bool ahead);
  };
  class BorrowedBatch;
  class WhileReading;
  // One call of read().
  struct Request {
    MappedCache& cache;
    const ExtentFile& file;
    const ByteRange range;
    char* const buffer;
    IoEngine& engine;
    StreamTable::Advice advice;
    std::optional<ByteRange> step;  // the part of it that the table counts
    bool is_part = false;
    const ConvoyScheduler::Turn* turn = nullptr;  // set by read_in_turn()
    bool wants(uint64_t frame_index) const;
    Piece piece_of(uint64_t frame_index) const;
    Admission admission(uint64_t frame_index) const;
    bool is_extent() const;
    bool copy(uint64_t frame_index, std::span<const std::byte> bytes) const;
  };

  std::optional<size_t> read_step(const ExtentFile& file, ByteRange range, void* buffer,
                                  IoEngine& engine, const ConvoyScheduler::Turn* turn);
  bool is_begun(const Request& request);
  std::optional<size_t> read_extents(const Request& request);
  bool read_hits(const Request& request);
  bool copy_kept(const Request& request, uint64_t frame_index, const Pin& pin);
  bool read_frames(const Request& request, uint64_t first, Batch& batch);
  static bool verify(const Request& request, uint64_t frame_index, std::span<const std::byte> bytes,
                     bool whole);
  bool take_ahead(const Request& request, uint64_t frame_index, const Pin& pin);
  void begin_ahead(const Request& request, bool urgent);
  void begin_ahead(const ExtentFile& file, const PrefetchTracker::Forecast& forecast,
                   DeviceSet devices, IoEngine& engine);
  void reserve(const Request& request, uint64_t frame_index, Batch& batch);
  bool fetch(const Request& request, Batch& batch);
  void wait(const Request& request, Batch& batch);
  Result<Pin> wait(const Request& request, FrameWait& frame, bool ahead);
  bool read_late(const Request& request, Batch& batch);
  MappedCache& kept() const { return *kept_.load(std::memory_order_acquire); }
  void maybe_enable_packing(std::span<const std::byte> frame);
  CacheStats frame_stats() const;
  uint64_t held_bytes() const;
  uint64_t budget_of(uint64_t room_bytes) const;
  void follow_memory();
  void apply_budget();
  void apply_budget_of(uint64_t budget);
  uint64_t ahead_memory(uint64_t budget) const;
  void count_requested(uint64_t bytes);
  uint64_t ahead_max(uint64_t length_bytes) const;
  Admission admission(const Request& request, uint64_t frame_index) const;

  // Constant after start().
  bool started_ = false;
  bool auto_budget_ = false;
  bool reclaimable_ = false;
  bool packs_ = false;
  bool keeps_ = true;
  bool reads_ahead_ = true;
  CachePolicy policy_ = CachePolicy::kScanResistant;
  uint64_t budget_max_ = 0;
  uint64_t ahead_min_ = 0;
  uint64_t turn_reach_ = 0;
  const char* memory_root_ = "";

  // The kept frames: unpacked at first, and packed once that has proved worth it.
  MappedCache plain_;
  MappedCache packed_;
  std::atomic<MappedCache*> kept_{&plain_};
  std::atomic<uint32_t> fills_{0};  // counted until it packs
  std::atomic<bool> begins_to_pack_{false};

  FutexLock budget_lock_;  // held while the budget is applied
  std::atomic<bool> paused_{false};
  std::atomic<bool> has_begun_ahead_{false};
  std::atomic<bool> beside_page_cache_{false};
  std::atomic<uint64_t> given_bytes_{0};
  SteadyBudget budget_{kGrowthMin};
  std::atomic<uint64_t> unchecked_bytes_{0};  // read since the free memory was checked
  std::atomic<bool> had_reclaims_{false};     // whether the kernel has reclaimed frames since then
  std::atomic<uint64_t> hit_bytes_{0};
  std::atomic<uint64_t> fetched_bytes_{0};
  std::atomic<uint64_t> bypassed_bytes_{0};
  std::atomic<uint64_t> reclaimed_frames_{0};
  StreamTable streams_;
  PrefetchTracker table_;
  ConvoyScheduler turns_;
  ReadAhead ahead_;
  Batch batches_[kBatchCount];
};

}  // namespace graphlane
