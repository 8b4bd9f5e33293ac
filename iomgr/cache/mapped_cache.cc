#include "iomgr/cache/mapped_cache.h"

#include <algorithm>
#include <cstring>

#include "iomgr/base/memory_order.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

// The expected packed size weighs as much as this many measured frames.
constexpr uint64_t kKnownFrames = 4;
constexpr uint64_t kSlack = 16;  // parts of the budget

// The memory that a packed frame takes.
uint64_t cost_of(uint64_t stored_bytes) {
  return round_up(stored_bytes, kBlockSize) +
         kPackedBytesMax / kPackedGroupBytes * sizeof(PackedGroup);
}

}  // namespace

MappedCache::~MappedCache() {
  if (memory_ != nullptr) sys::munmap(memory_, memory_bytes_);
}

Result<void> MappedCache::map(uint64_t bytes, const Options& options) {
  const uint64_t frame_bytes = options.frames.frame_bytes;
  const bool packs = options.packed_frame_bytes != 0;
  if (packs && frame_bytes != kPackedBytesMax) return Errno{EINVAL};
  if (packs) known_cost_ = cost_of(options.packed_frame_bytes);
  // Whole sets, so that a file that fits finds a place (cache.h).
  const uint64_t count =
      packs ? round_up(bytes / frame_cost(), uint64_t{kCacheWaysMax}) : bytes / frame_bytes;
  const uint64_t frames = count * frame_bytes;
  const uint64_t metadata = round_up(FrameCache::metadata_bytes(count), kBlockSize);
  const uint64_t notes =
      options.reclaimable ? round_up(frames / kBlockSize * sizeof(PageNote), kBlockSize) : 0;
  const uint64_t groups = packs ? frames / kPackedGroupBytes * sizeof(PackedGroup) : 0;
  const uint64_t sizes = packs ? count * sizeof(std::atomic<uint32_t>) : 0;
  const uint64_t all = frames + metadata + notes + groups + sizes;
  void* const memory = sys::map_memory(all);
  if (memory == nullptr) return Errno{ENOMEM};
  (void)sys::madvise(memory, all, MADV_WIPEONFORK);
  (void)sys::madvise(memory, all, MADV_DONTDUMP);
  // A huge page spans several frames, but is reclaimed as one.
  if (options.reclaimable || packs) (void)sys::madvise(memory, frames, MADV_NOHUGEPAGE);
  auto* const first = static_cast<std::byte*>(memory);
  CacheOptions of_frames = options.frames;
  if (packs) of_frames.owner = this;
  Result<void> made = cache_.init(of_frames, {first, frames}, {first + frames, metadata});
  if (!made) {
    sys::munmap(memory, all);
    return made;
  }
  memory_ = memory;
  memory_bytes_ = all;
  std::byte* next = first + frames + metadata;
  if (options.reclaimable) notes_ = reinterpret_cast<PageNote*>(next);
  next += notes;
  if (packs) {
    groups_ = reinterpret_cast<PackedGroup*>(next);
    costs_ = reinterpret_cast<std::atomic<uint32_t>*>(next + groups);
  }
  return {};
}

// ---- the budget

uint64_t MappedCache::frame_cost() const {
  return (cost_sum_.load(relaxed) + kKnownFrames * known_cost_) /
         (stored_count_.load(relaxed) + kKnownFrames);
}

uint64_t MappedCache::frames_in(uint64_t budget_bytes) const {
  return std::min<uint64_t>(budget_bytes / frame_cost(), cache_.frame_count());
}

Result<void> MappedCache::resize(uint64_t budget_bytes) {
  if (!packs()) return cache_.resize(budget_bytes);
  const FutexLockGuard lock(budget_lock_);
  budget_bytes_.store(budget_bytes, relaxed);
  return apply_budget();
}

// Resizes to the frames that the budget has room for now. Under the lock.
Result<void> MappedCache::apply_budget() {
  const uint64_t frames = frames_in(budget_bytes_.load(relaxed));
  budget_frames_.store(frames, relaxed);
  return cache_.resize(frames * cache_.frame_bytes());
}

// A frame that is being filled counts unpacked.
uint64_t MappedCache::resident_bytes() const {
  const uint64_t bytes = cache_.stats().resident_bytes;
  if (!packs()) return bytes;
  const uint64_t stored = stored_count_.load(relaxed) * cache_.frame_bytes();
  return cost_sum_.load(relaxed) + (bytes > stored ? bytes - stored : 0);
}

// Ignores small changes of the average: growing bit by bit keeps a file in pieces.
void MappedCache::count_stored(uint32_t frame, uint64_t stored_bytes) {
  const uint64_t cost = cost_of(stored_bytes);
  const uint64_t before = costs_[frame].exchange(static_cast<uint32_t>(cost), relaxed);
  cost_sum_.fetch_add(cost - before, relaxed);
  if (before == 0) stored_count_.fetch_add(1, relaxed);
  const uint64_t wanted = frames_in(budget_bytes_.load(relaxed));
  const uint64_t now = budget_frames_.load(relaxed);
  if (wanted + now / kSlack < now || wanted > now + now / kSlack) {
    const FutexLockGuard lock(budget_lock_);
    (void)apply_budget();
  }
}

void MappedCache::on_reclaimed(uint32_t frame) {
  const uint64_t cost = costs_[frame].exchange(0, relaxed);
  if (cost == 0) return;
  cost_sum_.fetch_sub(cost, relaxed);
  stored_count_.fetch_sub(1, relaxed);
}

// ---- frames

PackedGroup* MappedCache::groups_of(const FrameHold& hold) const {
  return groups_ + hold.frame() * (kPackedBytesMax / kPackedGroupBytes);
}

PageNote* MappedCache::notes_of(const FrameHold& hold) const {
  return notes_ + hold.frame() * (cache_.frame_bytes() / kBlockSize);
}

// Writes to each page, so that the kernel reclaims none while a device fills it.
void MappedCache::claim(const Fill& fill) {
  if (notes_ == nullptr) return;
  const std::span<std::byte> bytes = fill.bytes();
  for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
    *const_cast<volatile std::byte*>(&bytes[at]) = std::byte{0};
  }
}

void MappedCache::leave(const Fill& frame, uint64_t valid_bytes) {
  fill(frame, frame.bytes().first(valid_bytes));
}

// The stored bytes become reclaimable; the rest of the frame's place is freed.
void MappedCache::fill(const Fill& frame, std::span<const std::byte> bytes) {
  const std::span<std::byte> place = frame.bytes();
  const uint64_t stored = store(frame, bytes);
  uint64_t end = place.size();
  if (packs()) {
    end = round_up(stored, kBlockSize);
    if (end < place.size()) {
      (void)sys::madvise(place.data() + end, place.size() - end, MADV_DONTNEED);
    }
  }
  if (notes_ == nullptr) return;
  note_pages(place.first(stored), notes_of(frame));
  (void)sys::madvise(place.data(), end, MADV_FREE);
}

// Stores the bytes in the frame, packed if it is a whole one, and returns the stored size. The
// bytes may lie there already.
uint64_t MappedCache::store(const Fill& frame, std::span<const std::byte> bytes) {
  std::byte* const place = frame.bytes().data();
  uint64_t stored = bytes.size();
  if (packs() && stored == cache_.frame_bytes()) {
    stored = pack_words(bytes, place, groups_of(frame));
  } else if (bytes.data() != place) {
    std::memcpy(place, bytes.data(), stored);
  }
  if (packs()) count_stored(frame.frame(), stored);
  return stored;
}

bool MappedCache::copy(const Pin& pin, uint64_t begin, std::span<std::byte> to) {
  if (to.empty()) return true;
  const std::span<const std::byte> bytes = pin.bytes();
  if (!packs() || bytes.size() < cache_.frame_bytes()) {
    std::memcpy(to.data(), bytes.data() + begin, to.size());
    return !lost(pin, begin, begin + to.size());
  }
  const PackedGroup* const groups = groups_of(pin);
  unpack_words(bytes.data(), groups, begin, to);
  const PackedRange range = packed_range(groups, begin, to.size());
  return !lost(pin, range.begin, range.end);
}

bool MappedCache::lost(const Pin& pin, uint64_t begin, uint64_t end) {
  if (notes_ == nullptr) return false;
  if (!has_lost_page(pin.bytes().data(), notes_of(pin), begin, end)) return false;
  cache_.forget(pin);
  return true;
}

}  // namespace graphlane
