// ExtentCache: reads of striped files past the page cache, by way of frames of 1 MiB in
// this process's memory.
//
//   read(range) ──► frames that are there: copied
//               ──► that somebody is filling: waited for (single flight)
//               ──► that are missing: one request for all, whose segments the engine
//                   merges into one I/O a device
//               ──► what will be wanted next (prefetch_tracker.h): begun, and not
//                   waited for, on whichever device has nothing else to do (read_ahead.h);
//                   where that is not possible, part of the request, for small reads
//                   of a stream (stream_table.h)
//
// What is missing is read into a frame if the policy will keep it, or if the caller's
// memory or place is not aligned as direct I/O needs it; else straight into the
// caller's memory. So what a program asks for in small pieces, at odd offsets, or from
// several threads, reaches the devices in large aligned ones, and what the policy
// keeps is not read again in the next sweep.
//
// What is kept takes as few bits as its words need, where that is less (word_packing.h): looked at by
// a frame now and then, until one shows it.
//
// Budget: at most the bytes given, or, by itself, of what the machine and the process's
// memory cgroup leave. Of the bytes given less where not even 32 MiB are left to others, unless it yields.
// By itself, a cache that yields (mapped_cache.h) has half of it at first, and all but an
// eighth, 16 MiB at least, when that has lasted (steady_budget.h): what it keeps is the kernel's to
// take, as the page cache is, and is then read again. Another has half of
// what there is beyond 128 MiB: the rest is for what programs have allocated and not touched
// yet, and for the kernel's read-ahead, as under a tight limit the kernel kills. It is looked at
// anew whenever an eighth of it has been asked for, and given back when others need it. What is
// begun ahead has a twelfth, ahead_min_bytes to 64 MiB (of a small one, a quarter), and only once that is done: out
// of the bytes given, or beside what follows from the memory that is left, of which it takes its part
// by itself.
//
// Threads: read() from any, but in no signal handler that has interrupted one. Not
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
  // Of memory; kAutoBudget: by what is left, anew from time to time.
  static constexpr uint64_t kAutoBudget = UINT64_MAX;
  uint64_t budget_bytes = kAutoBudget;
  CachePolicy policy = CachePolicy::kScanResistant;
  bool reclaimable = false;
  // Disks seek from reader to reader: who reads in turn waits for those in front of him.
  bool turns_wait = false;
  // Memory for what is begun ahead, at least (of a small cache a quarter). Where all that is under way is in
  // it, a disk needs more: who asks for large pieces at once has most of that in his own memory.
  uint64_t ahead_min_bytes = uint64_t{10} << 20;
  // What it keeps, in fewer bytes, if the file's first frames show that this is worth it
  // (word_packing.h).
  bool packs = true;
  // For who wants to know what either is good for.
  bool keeps = true;       // what was read, but for memory that is not aligned
  bool reads_ahead = true;
  const char* memory_root = "";  // where it is looked at (memory_limit.h)
};

// "auto" or a size; EINVAL, ERANGE: neither.
Result<uint64_t> parse_budget(std::string_view text);

struct ExtentCacheStats {
  CacheStats frames;
  AheadStats ahead;
  uint64_t found_bytes = 0;    // asked for, and in memory, or on the way there
  uint64_t fetched_bytes = 0;  // into frames, also ahead
  uint64_t passed_bytes = 0;   // for which there was no frame
  uint64_t taken_frames = 0;   // by the kernel, and then asked for
  uint64_t ahead_bytes = 0;    // of memory, for what was begun ahead
  uint64_t budget_bytes = 0;
};

// What a user asks about: whether it saves reads, and what it takes.
// visit("found_bytes", "bytes found", 4096), and so on.
template <class Visit>
void for_each_counter(const ExtentCacheStats& stats, Visit visit) {
  visit("found_bytes", "bytes found", stats.found_bytes);
  visit("fetched_bytes", "bytes fetched", stats.fetched_bytes);
  visit("passed_bytes", "bytes past it", stats.passed_bytes);
  visit("ahead_frames", "MiB ahead", stats.ahead.fetched);
  visit("ahead_used", "of them used", stats.ahead.passed);
  visit("ahead_wasted", "of them for nothing", stats.ahead.wasted);
  visit("evictions", "evictions", stats.frames.evictions);
  visit("taken_frames", "MiB taken by the kernel", stats.taken_frames);
  visit("resident_bytes", "bytes in use", stats.frames.resident_bytes);
  visit("ahead_bytes", "for what is read ahead", stats.ahead_bytes);
  visit("budget_bytes", "allowed", stats.budget_bytes);
}

class ExtentCache {
 public:
  ExtentCache() = default;
  ~ExtentCache() { table_.clear(); }
  ExtentCache(const ExtentCache&) = delete;
  ExtentCache& operator=(const ExtentCache&) = delete;

  // ENOMEM: not even a few frames. Then, and before, read() declines everything.
  Result<void> start(const ExtentCacheOptions& options);

  // Reads the range into `buffer`: bytes, fewer than asked only at the end of the file.
  // Nothing: it is to be read otherwise, being a small read of no stream, or a large one
  // into memory that is not aligned as the file is, or because no memory is left, or a device
  // has failed (perhaps next to the range: the other way will tell).
  std::optional<size_t> read(const ExtentFile& file, ByteRange range, void* buffer,
                             IoEngine& engine);

  // The same for a part of a larger read whose other parts are asked for now, too. They go to
  // the devices together, so nothing is read ahead, and nobody waits for a neighbour's: only
  // what is to stay gets a frame.
  std::optional<size_t> read_part(const ExtentFile& file, ByteRange range, void* buffer,
                                  IoEngine& engine);

  // The same for a part of a larger read of this thread (convoy_scheduler.h) that is asked for part by
  // part, each when the one before it is there: what comes behind it is begun before anybody waits.
  std::optional<size_t> read_in_turn(const ExtentFile& file, uint32_t thread, ByteRange range,
                                     void* buffer, IoEngine& engine);

  // The range will be read soon: begins it, as far as the memory for that goes, if the devices
  // can; the rest when that much has been read.
  void will_need(const ExtentFile& file, ByteRange range, IoEngine& engine);

  // Of what was given at start(), so much may be used now.
  void set_budget(uint64_t bytes);
  // By what memory is left.
  void adjust_budget();
  // Whether the page cache of the same memory is swept, too, or another cache fills it: of one that
  // yields, the kernel would take its frames in turn with those, so it has no more then than one that
  // does not. Not at first.
  void set_beside_page_cache(bool beside);
  // Gives all memory back that nobody is reading; the budget stays.
  void clear();
  // The same, when what is read ahead has ended, and takes none until resume().
  void pause(IoEngine& engine);
  void resume();

  ExtentCacheStats stats() const;

 private:
  // With less, a cache would only be in the way.
  static constexpr uint64_t kSetBytes = kCacheWaysMax * kExtentFrameBytes;
  static constexpr uint64_t kGrowthMin = kSetBytes / 4;  // of a budget that follows the memory
  // Frames of one request to the devices. Two on a stack would be too many in a thread that
  // has only 16 KiB of it.
  static constexpr uint32_t kBatchMax = 64;
  static constexpr uint32_t kBatchCount = 32;
  struct Batch {
    std::atomic<bool> taken{false};
    uint32_t piece_count = 0;
    uint32_t wait_count = 0;
    uint32_t late_count = 0;
    Piece pieces[kBatchMax];  // what the devices are asked for
    Fill fills[kBatchMax];    // the frame that a piece is for; none: the caller's memory
    FrameWait waits[kBatchMax];
    uint64_t wait_index[kBatchMax];
    bool wait_ahead[kBatchMax];  // of what was read ahead
    Piece late[kBatchMax];  // no frame, and perhaps not aligned
    void add_late(const Piece& piece);
    void add_wait(uint64_t frame_index, Reservation& reservation, bool ahead);
  };
  class BorrowedBatch;
  class WhileReading;
  // What the caller asked for.
  struct Request {
    MappedCache& cache;
    const ExtentFile& file;
    const ByteRange range;
    char* const buffer;
    IoEngine& engine;
    StreamTable::Advice advice;
    std::optional<ByteRange> step;  // what the table is told of it
    bool is_part = false;
    const ConvoyScheduler::Turn* turn = nullptr;  // of who reads in turn
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
  bool read_found(const Request& request);
  bool copy_found(const Request& request, uint64_t frame_index, const Pin& pin);
  bool read_frames(const Request& request, uint64_t first, Batch& batch);
  bool take_ahead(const Request& request, uint64_t frame_index, const Pin& pin);
  void begin_ahead(const Request& request, bool urgent);
  void begin_ahead(const ExtentFile& file, const PrefetchTracker::Forecast& forecast, DeviceSet devices,
                   IoEngine& engine);
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
  void fit();
  void fit_to(uint64_t budget);
  uint64_t ahead_memory(uint64_t budget) const;
  void count_asked(uint64_t bytes);
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

  // What is kept: at first as it was read, and from when it has turned out to be worth it, packed.
  MappedCache plain_;
  MappedCache packed_;
  std::atomic<MappedCache*> kept_{&plain_};
  std::atomic<uint32_t> fills_{0};         // until then
  std::atomic<bool> begins_to_pack_{false};

  FutexLock fitting_;  // held while the budget is applied
  std::atomic<bool> paused_{false};
  std::atomic<bool> has_begun_ahead_{false};
  std::atomic<bool> beside_page_cache_{false};
  std::atomic<uint64_t> given_bytes_{0};
  SteadyBudget budget_{kGrowthMin};
  std::atomic<uint64_t> unlooked_bytes_{0};  // asked for since the memory was looked at
  std::atomic<bool> was_robbed_{false};      // since then, too
  std::atomic<uint64_t> found_bytes_{0};
  std::atomic<uint64_t> fetched_bytes_{0};
  std::atomic<uint64_t> passed_bytes_{0};
  std::atomic<uint64_t> taken_frames_{0};
  StreamTable streams_;
  PrefetchTracker table_;
  ConvoyScheduler turns_;
  ReadAhead ahead_;
  Batch batches_[kBatchCount];
};

}  // namespace graphlane
