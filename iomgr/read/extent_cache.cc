#include "iomgr/read/extent_cache.h"

#include <algorithm>

#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/size_text.h"

namespace graphlane {
namespace {

// How far a stream of small reads, or over shallow stripes, is read on.
constexpr uint64_t kAheadMin = 8 << 20;
// A reader waits for its turn only if it trails the leader by less than this (a GridGraph
// block is 24 MiB).
constexpr uint64_t kTurnReach = 32 << 20;

// Clips the range to the file. False: nothing is left.
bool clip(const ExtentFile& file, ByteRange* range) {
  const uint64_t left = range->offset < file.size_bytes ? file.size_bytes - range->offset : 0;
  range->length_bytes = std::min(range->length_bytes, left);
  return range->length_bytes > 0;
}

// The part of a read that is a step of a sweep. A small read is one only when it ends a frame.
std::optional<ByteRange> sweep_step(const ExtentFile& file, ByteRange range) {
  if (range.length_bytes >= kExtentFrameBytes) return range;
  const uint64_t begin = range.offset / kExtentFrameBytes * kExtentFrameBytes;
  const bool ends_frame =
      range.end() >= begin + kExtentFrameBytes || range.end() == file.size_bytes;
  if (!ends_frame) return {};
  return ByteRange{.offset = begin, .length_bytes = range.end() - begin};
}

// A multiple of a row of stripes, so that all devices take part.
uint64_t ahead_step(const ExtentFile& file) {
  const StripeGeometry& geometry = file.map.geometry();
  return round_up(kAheadMin, geometry.stripe_depth_bytes * geometry.device_count);
}

}  // namespace

Result<uint64_t> parse_budget(std::string_view text) {
  if (text == "auto") return uint64_t{kAutoBudget};
  return parse_size_text(text);
}

// ---- memory

Result<void> ExtentCache::start(const ExtentCacheOptions& options) {
  memory_root_ = options.memory_root;
  const bool follows = options.budget_bytes == kAutoBudget;
  Result<void> made = budget_.start({.given_bytes = options.budget_bytes,
                                     .reclaimable = options.reclaimable,
                                     .prefetch_bytes_min = options.ahead_min_bytes},
                                    follows ? memory_available_bytes(memory_root_) : 0);
  if (!made) return made;
  const MemoryBudget::Frames most = budget_.most();
  made = kept_.start(
      most.kept_bytes,
      {.policy = options.policy, .reclaimable = options.reclaimable, .packs = options.packs});
  if (!made) return made;
  reads_ahead_ = options.reads_ahead;
  turn_reach_ = options.turns_wait ? kTurnReach : 0;
  if (reads_ahead_) (void)ahead_.init(most.prefetched_bytes, prefetches_);
  reader_.start(options.keeps);
  apply_budget();
  started_ = true;
  return {};
}

// Under the lock, so that the last decision is applied last.
void ExtentCache::apply_budget() {
  const FutexLockGuard lock(budget_lock_);
  limit_frames(budget_.limits());
}

void ExtentCache::limit_frames(const MemoryBudget::Frames& limits) {
  kept_.resize(limits.kept_bytes);
  ahead_.resize(limits.prefetched_bytes);
}

uint64_t ExtentCache::available_bytes() const {
  return budget_.depends_on_memory() ? memory_available_bytes(memory_root_) : UINT64_MAX;
}

MemoryBudget::Frames ExtentCache::held() const {
  return {.kept_bytes = kept_.resident_bytes(), .prefetched_bytes = ahead_.resident_bytes()};
}

void ExtentCache::clear() {
  prefetches_.clear();
  {
    const FutexLockGuard lock(budget_lock_);
    limit_frames({});
  }
  apply_budget();
}

void ExtentCache::pause(IoEngine& engine) {
  budget_.set_paused(true);
  apply_budget();
  // Completes all prefetches first, because no other thread may poll them.
  while (engine.poll()) continue;
  prefetches_.clear();
}

void ExtentCache::resume() {
  budget_.set_paused(false);
  apply_budget();
  adjust_budget();
}

void ExtentCache::count_read(uint64_t bytes) {
  if (budget_.count_read(bytes)) adjust_budget();
}

void ExtentCache::set_budget(uint64_t bytes) {
  budget_.set_given(bytes);
  adjust_budget();
}

void ExtentCache::adjust_budget() {
  if (budget_.adjust(available_bytes(), held())) apply_budget();
}

void ExtentCache::set_beside_page_cache(bool beside) {
  if (!started_ || budget_.is_beside_page_cache() == beside) return;
  if (budget_.set_beside_page_cache(beside, available_bytes(), held())) apply_budget();
}

// How far a read of a stream reads on: to the next row of stripes, as far as the memory goes. Not for
// large reads: the next thread would wait for this one's I/O, and compute at the same time as it.
uint64_t ExtentCache::fetch_end(const ExtentFile& file, ByteRange range) const {
  if (range.length_bytes >= kLargeReadMin || !reads_ahead_) return range.end();
  const uint64_t most = uint64_t{PrefetchTracker::kAheadMax} / 2 * kExtentFrameBytes;
  const uint64_t frames = std::min(read_on_budget_of(budget_.bytes()), most) / kExtentFrameBytes;
  return std::min(round_up(range.end(), ahead_step(file)),
                  range.end() + frames * kExtentFrameBytes);
}

// ---- one read

// Prefetches on a device that has done its part of a request, while others are busy.
class ExtentCache::WhileReading final : public Meanwhile {
 public:
  WhileReading(ExtentCache& cache, const Step& step) : cache_(cache), step_(step) {}
  void device_idle() override { cache_.begin_ahead(step_, /*urgent=*/true); }

 private:
  ExtentCache& cache_;
  const Step& step_;
};

std::optional<size_t> ExtentCache::read(const ExtentFile& file, ByteRange range, void* buffer,
                                        IoEngine& engine) {
  return read_step(file, range, buffer, engine, /*turn=*/nullptr);
}

std::optional<size_t> ExtentCache::read_in_turn(const ExtentFile& file, uint32_t thread,
                                                ByteRange range, void* buffer, IoEngine& engine) {
  const ConvoyScheduler::Turn turn(convoys_, file.file_id, thread, range);
  return read_step(file, range, buffer, engine, &turn);
}

std::optional<size_t> ExtentCache::read_step(const ExtentFile& file, ByteRange range, void* buffer,
                                             IoEngine& engine, const ConvoyScheduler::Turn* turn) {
  if (!started_) return {};
  if (!clip(file, &range)) return 0;
  count_read(range.length_bytes);
  bool is_stream = patterns_.observe(pattern_file(file), range);
  // The first piece of a read in turn announces more: they are prefetched, not read on.
  const bool reads_on = is_stream && turn == nullptr;
  is_stream |= turn != nullptr && range.length_bytes >= kExtentReadMin;
  const ExtentRequest request{.cache = kept_.current(),
                              .file = file,
                              .range = range,
                              .buffer = static_cast<char*>(buffer),
                              .engine = engine,
                              .is_stream = is_stream,
                              .fetch_end = reads_on ? fetch_end(file, range) : range.end()};
  if (!request.is_extent()) {
    return reader_.read_hits(request) ? std::optional<size_t>(range.length_bytes) : std::nullopt;
  }
  const Step step{.file = file,
                  .engine = engine,
                  .range = sweep_step(file, range),
                  .is_stream = is_stream,
                  .turn = turn};
  // Must precede begin_read(): the leader prefetches the range only while it counts as unread.
  if (turn != nullptr) turn->await(turn_reach_, [&] { return reader_.is_begun(request); });
  if (step.range) prefetches_.begin_read(file, *step.range);
  WhileReading meanwhile(*this, step);
  const bool done = reader_.read(request, meanwhile);
  if (step.range) prefetches_.end_read(file, *step.range);
  if (!done) return {};
  // Prefetches now after a large read: the program may compute for long before its next one.
  begin_ahead(step, /*urgent=*/turn != nullptr || range.length_bytes >= kLargeReadMin);
  return range.length_bytes;
}

std::optional<size_t> ExtentCache::read_part(const ExtentFile& file, ByteRange range, void* buffer,
                                             IoEngine& engine) {
  if (!started_) return {};
  if (!clip(file, &range)) return 0;
  count_read(range.length_bytes);
  const Step step{.file = file, .engine = engine, .range = {}};
  WhileReading meanwhile(*this, step);
  const bool done = reader_.read({.cache = kept_.current(),
                                  .file = file,
                                  .range = range,
                                  .buffer = static_cast<char*>(buffer),
                                  .engine = engine,
                                  .fetch_end = range.end(),
                                  .is_part = true},
                                 meanwhile);
  return done ? std::optional<size_t>(range.length_bytes) : std::nullopt;
}

void ExtentCache::will_need(const ExtentFile& file, ByteRange range, IoEngine& engine) {
  const uint64_t reach = ahead_.reach_bytes();
  if (!started_ || reach == 0 || !clip(file, &range)) return;
  const DeviceSet idle = engine.idle_devices();
  if (idle == 0) return;
  PrefetchTracker::Forecast forecast;
  prefetches_.hint(file, range, reach, &forecast);
  begin_ahead(file, forecast, idle, engine);
}

// Prefetches what is expected next, on devices where no read waits. In turn, each leader gets an
// equal share of the reach.
void ExtentCache::begin_ahead(const Step& step, bool urgent) {
  uint64_t reach = ahead_.reach_bytes();
  if (!step.range || reach == 0) return;
  if (step.turn != nullptr) {
    if (!step.turn->leads(turn_reach_)) return;
    reach /= std::max(step.turn->leader_count(turn_reach_), 1u);
  }
  const DeviceSet idle = step.engine.idle_devices();
  if (idle == 0) return;
  PrefetchTracker::Forecast forecast;
  if (prefetches_.predict(step.file, *step.range, step.is_stream, urgent, ahead_step(step.file),
                          reach, &forecast)) {
    begin_ahead(step.file, forecast, idle, step.engine);
  }
}

// At the first prefetch the cache makes room. Without prefetches it has all of the budget.
void ExtentCache::begin_ahead(const ExtentFile& file, const PrefetchTracker::Forecast& forecast,
                              DeviceSet devices, IoEngine& engine) {
  if (budget_.begin_prefetch()) apply_budget();
  ahead_.begin(file, forecast, devices, *kept_.current(), engine);
}

ExtentCacheStats ExtentCache::stats() const {
  if (!started_) return {};
  const ExtentReader::Counts counts = reader_.counts();
  return {.frames = kept_.stats(),
          .prefetched = prefetches_.stats(),
          .hit_bytes = counts.hit_bytes,
          .fetched_bytes = counts.fetched_bytes + ahead_.fetched_bytes(),
          .bypassed_bytes = counts.bypassed_bytes,
          .reclaimed_frames = counts.reclaimed_frames,
          .prefetch_bytes = ahead_.resident_bytes(),
          .budget_bytes = budget_.bytes()};
}

}  // namespace graphlane
