#include "iomgr/read/extent_cache.h"

#include <algorithm>
#include <cstring>

#include "iomgr/base/futex.h"
#include "iomgr/base/memory_order.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/size_text.h"
#include "iomgr/base/slot_pool.h"

namespace graphlane {
namespace {

// Smaller reads use extents only within a stream.
constexpr uint64_t kExtentMin = kExtentFrameBytes / 2;
// How far a stream of small reads, or over shallow stripes, is read on.
constexpr uint64_t kAheadMin = 8 << 20;
// Reads of this size keep the devices busy by themselves.
constexpr uint64_t kLargeMin = 8 << 20;
// The share of the budget that one read may read on.
constexpr uint64_t kAheadShare = 4;
// The share of the budget for prefetched frames; it is lost to kept frames (README.md).
constexpr uint64_t kAheadMemoryShare = 12;
constexpr uint64_t kAheadMemoryMax = 64 << 20;
// The free memory is checked at most once per so many bytes read.
constexpr uint64_t kBudgetStepMin = 8 << 20;
// The filler of a frame may have been killed (a vfork child, while its parent lives).
constexpr uint64_t kFillPatienceNs = 30'000'000'000;
// A thread that reserved a prefetch frame may not have submitted it yet, or may compute after it
// has. Then the waiter must poll the engine itself.
constexpr uint64_t kUndrivenNs = 5'000'000;
// A reader waits for its turn only if it trails the leader by less than this (a GridGraph
// block is 24 MiB).
constexpr uint64_t kTurnReach = 32 << 20;
// One frame in so many is sampled for packing, and the least packed size that map() assumes.
constexpr uint32_t kPackingLooks = 16;
constexpr uint64_t kPackedLeast = kExtentFrameBytes / 4;

bool is_aligned(const Piece& piece) {
  const uint64_t place =
      piece.range.offset | piece.range.length_bytes | reinterpret_cast<uintptr_t>(piece.buffer);
  return place % kBlockSize == 0;
}

// Clips the range to the file. False: nothing is left.
bool clip(const ExtentFile& file, ByteRange* range) {
  const uint64_t left = range->offset < file.size_bytes ? file.size_bytes - range->offset : 0;
  range->length_bytes = std::min(range->length_bytes, left);
  return range->length_bytes > 0;
}

// The part of a read that the table counts. A small read counts only when it ends a frame.
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
  if (text == "auto") return uint64_t{ExtentCacheOptions::kAutoBudget};
  return parse_size_text(text);
}

class ExtentCache::BorrowedBatch {
 public:
  template <size_t count>
  explicit BorrowedBatch(Batch (&batches)[count]) : batch_(take_free_slot(batches)) {}
  ~BorrowedBatch() {
    if (batch_ != nullptr) free_slot(*batch_);
  }
  BorrowedBatch(const BorrowedBatch&) = delete;
  BorrowedBatch& operator=(const BorrowedBatch&) = delete;
  explicit operator bool() const { return batch_ != nullptr; }
  Batch& operator*() const { return *batch_; }

 private:
  Batch* const batch_;
};

// ---- memory

Result<void> ExtentCache::start(const ExtentCacheOptions& options) {
  auto_budget_ = options.budget_bytes == ExtentCacheOptions::kAutoBudget;
  reclaimable_ = options.reclaimable;
  memory_root_ = options.memory_root;
  const uint64_t room = auto_budget_ ? memory_available_bytes(memory_root_) : 0;
  const uint64_t allowed = auto_budget_ ? budget_of(room) : options.budget_bytes;
  const uint64_t most = allowed / kSetBytes * kSetBytes;
  if (most < kSetBytes) return Errno{ENOMEM};
  policy_ = options.policy;
  packs_ = options.packs;
  Result<void> mapped =
      plain_.map(most, {.frames = {.frame_bytes = kExtentFrameBytes, .policy = policy_},
                        .reclaimable = reclaimable_});
  if (!mapped) return mapped;
  keeps_ = options.keeps;
  reads_ahead_ = options.reads_ahead;
  ahead_min_ = std::min(options.ahead_min_bytes, kAheadMemoryMax);
  turn_reach_ = options.turns_wait ? kTurnReach : 0;
  if (reads_ahead_) (void)ahead_.init(ahead_memory(most), table_);
  budget_max_ = most;
  given_bytes_.store(most, relaxed);
  budget_.set(auto_budget_ ? std::min(most, room / 2) : most);
  apply_budget();
  started_ = true;
  return {};
}

uint64_t ExtentCache::budget_of(uint64_t room_bytes) const {
  const bool takes_all = reclaimable_ && !beside_page_cache_.load(relaxed);
  return takes_all ? reclaimable_budget_of(room_bytes) : cache_budget_of(room_bytes);
}

uint64_t ExtentCache::ahead_memory(uint64_t budget) const {
  const uint64_t share = std::clamp(budget / kAheadMemoryShare, ahead_min_, kAheadMemoryMax);
  return std::min(share, budget / kAheadShare);
}

void ExtentCache::set_budget(uint64_t bytes) {
  given_bytes_.store(std::min(bytes, budget_max_), relaxed);
  adjust_budget();
}

// Under the lock, so that the last decision is applied last.
void ExtentCache::apply_budget() {
  const FutexLockGuard lock(budget_lock_);
  apply_budget_of(paused_.load(relaxed) ? 0 : budget_.bytes());
}

void ExtentCache::apply_budget_of(uint64_t budget) {
  const uint64_t ahead = ahead_memory(budget);
  // With a budget that follows the free memory, the prefetched frames have lowered that.
  const bool is_part = !auto_budget_ && has_begun_ahead_.load(relaxed);
  (void)kept().resize(is_part ? budget - ahead : budget);
  ahead_.resize(ahead);
}

uint64_t ExtentCache::held_bytes() const {
  return kept().resident_bytes() + ahead_.resident_bytes();
}

// The sum over both caches.
CacheStats ExtentCache::frame_stats() const {
  CacheStats stats = plain_->stats();
  if (&kept() == &plain_) return stats;
  const CacheStats packed = packed_->stats();
  stats.hits += packed.hits;
  stats.fills += packed.fills;
  stats.waits += packed.waits;
  stats.rejected += packed.rejected;
  stats.failures += packed.failures;
  stats.evictions += packed.evictions;
  stats.resident_bytes += packed_.resident_bytes();
  return stats;
}

// Samples frames that were just read: once one of them packs well, starts the packed cache. The
// frames in memory are given up for it.
void ExtentCache::maybe_enable_packing(std::span<const std::byte> frame) {
  if (!packs_ || &kept() != &plain_ || frame.size() != kExtentFrameBytes) return;
  if (fills_.fetch_add(1, relaxed) % kPackingLooks != 0) return;
  const uint64_t packed = packed_bytes(frame);
  if (!is_worth_packing(packed, kExtentFrameBytes) || begins_to_pack_.exchange(true, relaxed)) {
    return;
  }
  const Result<void> mapped =
      packed_.map(budget_max_, {.frames = {.frame_bytes = kExtentFrameBytes, .policy = policy_},
                                .reclaimable = reclaimable_,
                                .packed_frame_bytes = std::max(packed, kPackedLeast)});
  if (!mapped) return;
  {
    const FutexLockGuard lock(budget_lock_);
    kept_.store(&packed_, std::memory_order_release);
    (void)plain_.resize(0);
  }
  apply_budget();
}

void ExtentCache::clear() {
  table_.clear();
  {
    const FutexLockGuard lock(budget_lock_);
    apply_budget_of(0);
  }
  apply_budget();
}

void ExtentCache::pause(IoEngine& engine) {
  paused_.store(true, relaxed);
  apply_budget();
  // Completes all prefetches first, because no other thread may poll them.
  while (engine.poll()) continue;
  table_.clear();
}

void ExtentCache::resume() {
  paused_.store(false, relaxed);
  apply_budget();
  adjust_budget();
}

// Counts hits and prefetched bytes, too: while all reads hit, programs may come to need memory.
void ExtentCache::count_requested(uint64_t bytes) {
  if (!auto_budget_ && reclaimable_) return;
  const uint64_t step = std::max(budget_.bytes() / 8, kBudgetStepMin);
  if (unchecked_bytes_.fetch_add(bytes, relaxed) + bytes < step) return;
  const uint64_t asked = unchecked_bytes_.exchange(0, relaxed);
  if (asked < step) return;  // another thread looks
  budget_.count_read(asked);
  adjust_budget();
}

void ExtentCache::adjust_budget() {
  if (paused_.load(relaxed)) return;
  if (auto_budget_) {
    follow_memory();
    return;
  }
  uint64_t budget = given_bytes_.load(relaxed);
  const uint64_t available = reclaimable_ ? UINT64_MAX : memory_available_bytes(memory_root_);
  if (available != UINT64_MAX) {  // unknown otherwise
    const uint64_t held = held_bytes();
    const uint64_t room = given_budget_of(available + held);
    budget = std::min(budget, room / kExtentFrameBytes * kExtentFrameBytes);
  }
  budget_.set(budget);
  apply_budget();
}

void ExtentCache::set_beside_page_cache(bool beside) {
  if (!started_ || beside_page_cache_.load(relaxed) == beside ||
      beside_page_cache_.exchange(beside, relaxed) == beside) {
    return;
  }
  const uint64_t available = auto_budget_ ? memory_available_bytes(memory_root_) : UINT64_MAX;
  if (available != UINT64_MAX) {  // as at the start
    budget_.set(std::min(budget_max_, (available + held_bytes()) / 2));
    apply_budget();
  }
  adjust_budget();
}

void ExtentCache::follow_memory() {
  const uint64_t available = memory_available_bytes(memory_root_);
  if (available == UINT64_MAX) return;  // unknown: the budget stays
  const uint64_t ahead = ahead_.resident_bytes();
  const uint64_t both = budget_of(available + held_bytes());
  uint64_t room =
      std::min(budget_max_, both - std::min(both, ahead)) / kExtentFrameBytes * kExtentFrameBytes;
  // Frames that the kernel reclaimed unnoticed count as held: there is less room than it seems.
  if (had_reclaims_.exchange(false, relaxed)) room = std::min(room, budget_.bytes() / 2);
  if (budget_.adjust(room)) apply_budget();
}

// How far one read may read on. Not for large reads: the next thread would wait for this one's
// I/O, and compute at the same time as it.
uint64_t ExtentCache::ahead_max(uint64_t length_bytes) const {
  if (length_bytes >= kLargeMin || !reads_ahead_) return 0;
  const uint64_t share = budget_.bytes() / kAheadShare;
  const uint64_t most = uint64_t{PrefetchTracker::kAheadMax} / 2 * kExtentFrameBytes;
  return std::min(share, most) / kExtentFrameBytes * kExtentFrameBytes;
}

// ---- one request

bool ExtentCache::Request::wants(uint64_t frame_index) const {
  return frame_index * kExtentFrameBytes < range.end();
}

// The part of the range in the frame, and its place in the caller's buffer.
Piece ExtentCache::Request::piece_of(uint64_t frame_index) const {
  const uint64_t begin = std::max(range.offset, frame_index * kExtentFrameBytes);
  const uint64_t end = std::min(range.end(), (frame_index + 1) * kExtentFrameBytes);
  return {.range = {.offset = begin, .length_bytes = end - begin},
          .buffer = buffer + (begin - range.offset)};
}

// An unaligned piece needs a frame. Two reads that share a frame at their ends use it once. A
// large read leaves that frame alone, because the second reader would wait for all of the
// first one's I/O.
Admission ExtentCache::Request::admission(uint64_t frame_index) const {
  const Piece piece = piece_of(frame_index);
  if (!is_aligned(piece)) return Admission::kAlways;
  // The reader of the frame's first byte counts the use.
  if (is_part) {
    return piece.range.offset % kExtentFrameBytes == 0 ? Admission::kToKeep : Admission::kNone;
  }
  const bool whole =
      piece.range.length_bytes == kExtentFrameBytes || range.length_bytes < 2 * kExtentFrameBytes;
  if (whole) return Admission::kByPolicy;
  return range.length_bytes < kLargeMin ? Admission::kAhead : Admission::kNone;
}

// Whether frames are worth their cost. They are not for a few random bytes. Nor are they for a
// large read into a buffer not aligned as the file is, as each piece would need a frame.
bool ExtentCache::Request::is_extent() const {
  const bool as_in_file = (reinterpret_cast<uintptr_t>(buffer) - range.offset) % kBlockSize == 0;
  if (range.length_bytes >= kLargeMin) return as_in_file;
  return range.length_bytes >= kExtentMin || advice.is_stream;
}

// Adds a piece of the caller's buffer that nothing was read into yet.
void ExtentCache::Batch::add_late(const Piece& piece) {
  Piece* const last = late_count == 0 ? nullptr : &late[late_count - 1];
  if (last != nullptr && last->range.end() == piece.range.offset) {
    last->range.length_bytes += piece.range.length_bytes;
  } else {
    late[late_count++] = piece;
  }
}

void ExtentCache::Batch::add_wait(uint64_t frame_index, Reservation& reservation, bool ahead) {
  wait_index[wait_count] = frame_index;
  wait_ahead[wait_count] = ahead;
  waits[wait_count++] = std::move(reservation.wait);
}

// Copies the piece from an unpacked frame. False: the frame ends before the piece does.
bool ExtentCache::Request::copy(uint64_t frame_index, std::span<const std::byte> bytes) const {
  const Piece piece = piece_of(frame_index);
  const uint64_t begin = piece.range.offset - frame_index * kExtentFrameBytes;
  if (begin + piece.range.length_bytes > bytes.size()) return false;
  std::memcpy(piece.buffer, bytes.data() + begin, piece.range.length_bytes);
  return true;
}

// As above from a kept frame. False also if the kernel has reclaimed some of it.
bool ExtentCache::copy_kept(const Request& request, uint64_t frame_index, const Pin& pin) {
  const Piece piece = request.piece_of(frame_index);
  const uint64_t begin = piece.range.offset - frame_index * kExtentFrameBytes;
  if (begin + piece.range.length_bytes > pin.bytes().size()) return false;
  const std::span<std::byte> to{static_cast<std::byte*>(piece.buffer), piece.range.length_bytes};
  if (!request.cache.copy(pin, begin, to)) {
    reclaimed_frames_.fetch_add(1, relaxed);
    had_reclaims_.store(true, relaxed);
    return false;
  }
  hit_bytes_.fetch_add(piece.range.length_bytes, relaxed);
  return true;
}

std::optional<size_t> ExtentCache::read(const ExtentFile& file, ByteRange range, void* buffer,
                                        IoEngine& engine) {
  return read_step(file, range, buffer, engine, /*turn=*/nullptr);
}

std::optional<size_t> ExtentCache::read_in_turn(const ExtentFile& file, uint32_t thread,
                                                ByteRange range, void* buffer, IoEngine& engine) {
  const ConvoyScheduler::Turn turn(turns_, file.file_id, thread, range);
  return read_step(file, range, buffer, engine, &turn);
}

std::optional<size_t> ExtentCache::read_step(const ExtentFile& file, ByteRange range, void* buffer,
                                             IoEngine& engine, const ConvoyScheduler::Turn* turn) {
  if (!started_) return {};
  if (!clip(file, &range)) return 0;
  count_requested(range.length_bytes);
  Request request{.cache = kept(),
                  .file = file,
                  .range = range,
                  .buffer = static_cast<char*>(buffer),
                  .engine = engine,
                  .advice = streams_.observe(file.file_id, file.generation, range, ahead_step(file),
                                             ahead_max(range.length_bytes)),
                  .step = sweep_step(file, range),
                  .turn = turn};
  if (turn != nullptr) {
    // The first piece of a read announces more: they are prefetched, not read on.
    request.advice.is_stream |= range.length_bytes >= kExtentMin;
    request.advice.fetch_end = range.end();
  }
  if (!request.is_extent()) {
    return read_hits(request) ? std::optional<size_t>(range.length_bytes) : std::nullopt;
  }
  // Must precede arrive(): the leader prefetches the range only while it counts as unread.
  if (turn != nullptr) turn->await(turn_reach_, [&] { return is_begun(request); });
  if (request.step) table_.arrive(file, *request.step);
  const std::optional<size_t> got = read_extents(request);
  if (request.step) table_.pass(file, *request.step);
  // Prefetches now after a large read: the program may compute for long before its next one.
  if (got) begin_ahead(request, /*urgent=*/turn != nullptr || range.length_bytes >= kLargeMin);
  return got;
}

// Whether all of it is in memory or in flight.
bool ExtentCache::is_begun(const Request& request) {
  for (uint64_t i = request.range.offset / kExtentFrameBytes; request.wants(i); ++i) {
    const FrameKey key = request.file.key(i);
    if (request.cache->contains(key)) continue;
    if (ahead_.join(key).kind == Reservation::Kind::kBypass) return false;
  }
  return true;
}

std::optional<size_t> ExtentCache::read_part(const ExtentFile& file, ByteRange range, void* buffer,
                                             IoEngine& engine) {
  if (!started_) return {};
  if (!clip(file, &range)) return 0;
  count_requested(range.length_bytes);
  return read_extents({.cache = kept(),
                       .file = file,
                       .range = range,
                       .buffer = static_cast<char*>(buffer),
                       .engine = engine,
                       .advice = {.fetch_end = range.end()},
                       .step = {},
                       .is_part = true});
}

void ExtentCache::will_need(const ExtentFile& file, ByteRange range, IoEngine& engine) {
  const uint64_t reach = ahead_.reach_bytes();
  if (!started_ || reach == 0 || !clip(file, &range)) return;
  const DeviceSet idle = engine.idle_devices();
  if (idle == 0) return;
  PrefetchTracker::Forecast forecast;
  table_.hint(file, range, reach, &forecast);
  begin_ahead(file, forecast, idle, engine);
}

std::optional<size_t> ExtentCache::read_extents(const Request& request) {
  const BorrowedBatch batch(batches_);
  if (!batch) return {};
  for (uint64_t first = request.range.offset / kExtentFrameBytes; request.wants(first);
       first += kBatchMax) {
    if (!read_frames(request, first, *batch)) return {};
  }
  return request.range.length_bytes;
}

// Succeeds only if all of it is in memory.
bool ExtentCache::read_hits(const Request& request) {
  for (uint64_t i = request.range.offset / kExtentFrameBytes; request.wants(i); ++i) {
    const Pin pin = request.cache->find(request.file.key(i));
    if (!pin || !copy_kept(request, i, pin)) return false;
  }
  return true;
}

// Reads a batch of frames from `first` on. If a device is needed, also reads on. False: a
// device failed.
bool ExtentCache::read_frames(const Request& request, uint64_t first, Batch& batch) {
  batch.piece_count = batch.wait_count = batch.late_count = 0;
  const uint64_t end = first + kBatchMax;
  uint64_t next = first;
  for (; next < end && request.wants(next); ++next) reserve(request, next, batch);
  // Reads on only where the engine cannot prefetch, as the devices are busy now anyway.
  if (batch.piece_count > 0 && request.engine.idle_devices() == 0) {
    const uint64_t ahead_end = std::min(request.advice.fetch_end, request.file.size_bytes);
    for (; next < end && next * kExtentFrameBytes < ahead_end; ++next) {
      reserve(request, next, batch);
    }
  }
  // Must fetch before waiting, because other threads may wait for these frames.
  if (!fetch(request, batch)) {
    for (uint32_t i = 0; i < batch.wait_count; ++i) batch.waits[i].release();
    return false;
  }
  wait(request, batch);
  return read_late(request, batch);
}

// Whether the blocks of a prefetched frame match their checksums: all of them, or those that are
// wanted.
bool ExtentCache::verify(const Request& request, uint64_t frame_index,
                         std::span<const std::byte> bytes, bool whole) {
  const uint64_t frame_at = frame_index * kExtentFrameBytes;
  const Piece wanted = request.piece_of(frame_index);
  const uint64_t begin = whole ? 0 : (wanted.range.offset - frame_at) / kBlockSize * kBlockSize;
  const uint64_t end =
      whole ? bytes.size()
            : std::min(round_up(wanted.range.end() - frame_at, kBlockSize), bytes.size());
  if (begin >= end) return true;
  const Piece piece{.range = {.offset = frame_at + begin, .length_bytes = end - begin},
                    .buffer = const_cast<std::byte*>(bytes.data()) + begin};
  return verify_pieces({.map = request.file.map,
                        .parts = request.file.parts,
                        .size_bytes = request.file.size_bytes,
                        .direct = true,
                        .pieces = {&piece, 1}}) == 0;
}

// Copies a prefetched frame to the caller. Once its last byte is read, the cache may keep it. So
// the pieces of a frame count as one use.
bool ExtentCache::take_ahead(const Request& request, uint64_t frame_index, const Pin& pin) {
  const std::span<const std::byte> bytes = pin.bytes();
  const bool is_last = request.range.end() >= frame_index * kExtentFrameBytes + bytes.size();
  if (!request.engine.verifies_submitted() &&
      !verify(request, frame_index, bytes, /*whole=*/keeps_ && is_last)) {
    return false;
  }
  if (!request.copy(frame_index, bytes)) return false;
  if (!keeps_ || !is_last) return true;
  Reservation reservation =
      request.cache->reserve(request.file.key(frame_index), Admission::kToKeep);
  if (reservation.kind != Reservation::Kind::kFill) return true;
  request.cache.fill(reservation.fill, bytes);
  (void)reservation.fill.publish(bytes.size());
  maybe_enable_packing(bytes);
  return true;
}

// Prefetches what is expected next, on devices where no read waits. In turn, each leader gets an
// equal share of the reach.
void ExtentCache::begin_ahead(const Request& request, bool urgent) {
  uint64_t reach = ahead_.reach_bytes();
  if (!request.step || reach == 0) return;
  if (request.turn != nullptr) {
    if (!request.turn->is_in_front(turn_reach_)) return;
    reach /= std::max(request.turn->front_count(turn_reach_), 1u);
  }
  const DeviceSet idle = request.engine.idle_devices();
  if (idle == 0) return;
  PrefetchTracker::Forecast forecast;
  if (table_.predict(request.file, *request.step, request.advice.is_stream, urgent,
                     ahead_step(request.file), reach, &forecast)) {
    begin_ahead(request.file, forecast, idle, request.engine);
  }
}

// At the first prefetch the cache makes room. Without prefetches it has all of the budget.
void ExtentCache::begin_ahead(const ExtentFile& file, const PrefetchTracker::Forecast& forecast,
                              DeviceSet devices, IoEngine& engine) {
  if (!has_begun_ahead_.load(relaxed) && !has_begun_ahead_.exchange(true, relaxed)) {
    apply_budget();
  }
  ahead_.begin(file, forecast, devices, *kept(), engine);
}

// Prefetches on a device that has done its part of a request, while others are busy.
class ExtentCache::WhileReading final : public Meanwhile {
 public:
  WhileReading(ExtentCache& cache, const Request& request) : cache_(cache), request_(request) {}
  void device_idle() override { cache_.begin_ahead(request_, /*urgent=*/true); }

 private:
  ExtentCache& cache_;
  const Request& request_;
};

Admission ExtentCache::admission(const Request& request, uint64_t frame_index) const {
  if (!request.wants(frame_index)) return Admission::kAhead;
  const Admission admission = request.admission(frame_index);
  return keeps_ || admission == Admission::kAlways ? admission : Admission::kNone;
}

void ExtentCache::reserve(const Request& request, uint64_t frame_index, Batch& batch) {
  const ExtentFile& file = request.file;
  const FrameKey key = file.key(frame_index);
  const bool wanted = request.wants(frame_index);
  if (const Pin pin = request.cache->find(key)) {
    if (wanted && !copy_kept(request, frame_index, pin)) {
      batch.add_late(request.piece_of(frame_index));
    }
    return;
  }
  Reservation ahead = ahead_.join(key);
  if (ahead.kind == Reservation::Kind::kWait) {
    if (wanted) batch.add_wait(frame_index, ahead, true);
    return;
  }
  if (ahead.kind == Reservation::Kind::kHit) {
    if (wanted && !take_ahead(request, frame_index, ahead.pin)) {
      batch.add_late(request.piece_of(frame_index));
    }
    return;
  }
  Reservation reservation = request.cache->reserve(key, admission(request, frame_index));
  if (reservation.kind == Reservation::Kind::kFill) {
    request.cache.claim(reservation.fill);
    if (!wanted) table_.hold(key, frame_index * kExtentFrameBytes - request.range.end());
    batch.pieces[batch.piece_count] = {.range = file.frame_range(frame_index),
                                       .buffer = reservation.fill.bytes().data()};
    batch.fills[batch.piece_count++] = std::move(reservation.fill);
    return;
  }
  if (!wanted) return;
  if (reservation.kind == Reservation::Kind::kWait) {
    batch.add_wait(frame_index, reservation, false);
  } else if (reservation.kind == Reservation::Kind::kBypass &&
             is_aligned(request.piece_of(frame_index))) {
    batch.pieces[batch.piece_count++] = request.piece_of(frame_index);
  } else if (reservation.kind != Reservation::Kind::kHit ||
             !copy_kept(request, frame_index, reservation.pin)) {
    batch.add_late(request.piece_of(frame_index));
  }
}

// Requests all pieces from the devices at once.
bool ExtentCache::fetch(const Request& request, Batch& batch) {
  if (batch.piece_count == 0) return true;
  const ExtentFile& file = request.file;
  WhileReading meanwhile(*this, request);
  const int error = request.engine.run({.map = file.map,
                                        .parts = file.parts,
                                        .size_bytes = file.size_bytes,
                                        .op = IoOp::kRead,
                                        .direct = true,
                                        .pieces = {batch.pieces, batch.piece_count},
                                        .meanwhile = &meanwhile});
  uint64_t fetched = 0, passed = 0;
  for (uint32_t i = 0; i < batch.piece_count; ++i) {
    const ByteRange& range = batch.pieces[i].range;
    if (!batch.fills[i]) {
      passed += range.length_bytes;
    } else if (error != 0) {
      batch.fills[i].abandon(error);
    } else {
      const uint64_t index = range.offset / kExtentFrameBytes;
      const uint64_t length = std::min(range.length_bytes, file.size_bytes - range.offset);
      const bool wanted = request.wants(index);
      const std::span<const std::byte> bytes = batch.fills[i].bytes().first(length);
      if (wanted) (void)request.copy(index, bytes);
      maybe_enable_packing(bytes);
      request.cache.leave(batch.fills[i], length);
      Pin pin = batch.fills[i].publish(length);
      fetched += length;
      if (!wanted) table_.keep(file.key(index), std::move(pin));
    }
  }
  fetched_bytes_.fetch_add(fetched, relaxed);
  bypassed_bytes_.fetch_add(passed, relaxed);
  return error == 0;
}

Result<Pin> ExtentCache::wait(const Request& request, FrameWait& frame, bool ahead) {
  const uint64_t deadline = monotonic_ns() + kFillPatienceNs;
  for (;;) {
    while (!frame.ended() && request.engine.poll()) begin_ahead(request, /*urgent=*/true);
    Result<Pin> pin = frame.wait(ahead ? kUndrivenNs : kFillPatienceNs);
    // `frame` is empty once the wait has ended; it keeps the frame while the fill goes on.
    if (pin || !frame || !ahead || monotonic_ns() >= deadline) return pin;
    begin_ahead(request, /*urgent=*/true);
  }
}

void ExtentCache::wait(const Request& request, Batch& batch) {
  for (uint32_t i = 0; i < batch.wait_count; ++i) {
    const uint64_t index = batch.wait_index[i];
    const Result<Pin> pin = wait(request, batch.waits[i], batch.wait_ahead[i]);
    if (pin && (batch.wait_ahead[i] ? take_ahead(request, index, *pin)
                                    : copy_kept(request, index, *pin))) {
      continue;
    }
    batch.waits[i].release();
    batch.add_late(request.piece_of(index));
  }
}

// Reads the pieces without a frame, and those that another thread failed to fill. Unaligned ones
// go through the page cache.
bool ExtentCache::read_late(const Request& request, Batch& batch) {
  for (uint32_t i = 0; i < batch.late_count; ++i) {
    const Piece& piece = batch.late[i];
    bypassed_bytes_.fetch_add(piece.range.length_bytes, relaxed);
    const int error = request.engine.run({.map = request.file.map,
                                          .parts = request.file.parts,
                                          .size_bytes = request.file.size_bytes,
                                          .op = IoOp::kRead,
                                          .direct = is_aligned(piece),
                                          .pieces = {&piece, 1}});
    if (error != 0) return false;
  }
  return true;
}

ExtentCacheStats ExtentCache::stats() const {
  if (!started_) return {};
  return {.frames = frame_stats(),
          .ahead = table_.stats(),
          .hit_bytes = hit_bytes_.load(relaxed),
          .fetched_bytes = fetched_bytes_.load(relaxed) + ahead_.fetched_bytes(),
          .bypassed_bytes = bypassed_bytes_.load(relaxed),
          .reclaimed_frames = reclaimed_frames_.load(relaxed),
          .ahead_bytes = ahead_.resident_bytes(),
          .budget_bytes = budget_.bytes()};
}

}  // namespace graphlane
