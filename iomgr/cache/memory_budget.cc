#include "iomgr/cache/memory_budget.h"

#include <algorithm>
#include <cerrno>

#include "iomgr/cache/cache.h"

namespace graphlane {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// The free memory is checked at most once per so many bytes read.
constexpr uint64_t kCheckBytesMin = 8 * kMiB;
constexpr uint64_t kScanBytesMax = 24 * kMiB;

uint64_t less(uint64_t bytes, uint64_t left_alone) { return bytes - std::min(bytes, left_alone); }

}  // namespace

uint64_t budget_of(MemoryUse use, uint64_t room_bytes) {
  switch (use) {
    case MemoryUse::kFrames: return less(room_bytes, 128 * kMiB) / 2;
    case MemoryUse::kReclaimableFrames:
      return less(room_bytes, std::max(room_bytes / 8, 16 * kMiB));
    case MemoryUse::kFirstFrames: return room_bytes / 2;
    case MemoryUse::kGivenFrames: return less(room_bytes, 32 * kMiB);
    case MemoryUse::kSharedPages: return room_bytes / 8 * 5;
    case MemoryUse::kPrefetchedPages: return room_bytes / 4;
    case MemoryUse::kKeptPages: return room_bytes / 4;
    case MemoryUse::kPagesBehind: return std::max(room_bytes / 4, 16 * kMiB);
    case MemoryUse::kKernelReadAhead: return room_bytes / 32;
    case MemoryUse::kDirtyPages: return room_bytes / 4;
    case MemoryUse::kBuffers: return room_bytes / 2;
    case MemoryUse::kPackedBuffers: return less(room_bytes, std::max(room_bytes / 32, 6 * kMiB));
  }
  return 0;
}

MemoryFit fit_in_memory(IoMode mode, uint64_t all_bytes, uint64_t available_bytes) {
  if (mode != IoMode::kAuto) return mode == IoMode::kDirect ? MemoryFit::kNot : MemoryFit::kTwice;
  // An eighth stays free: a file that just fits is evicted by other programs' memory.
  const uint64_t room = available_bytes - available_bytes / 8;
  if (all_bytes > room) return MemoryFit::kNot;
  return all_bytes > room / 2 ? MemoryFit::kOnce : MemoryFit::kTwice;
}

uint64_t prefetch_budget_of(uint64_t budget_bytes, uint64_t min_bytes) {
  const uint64_t least = std::min(min_bytes, kPrefetchBytesMax);
  const uint64_t share = std::clamp(budget_bytes / 12, least, kPrefetchBytesMax);
  return std::min(share, budget_bytes / 4);
}

uint64_t read_on_budget_of(uint64_t budget_bytes) { return budget_bytes / 4; }

uint64_t scan_budget_of(uint64_t budget_bytes) { return std::min(budget_bytes / 2, kScanBytesMax); }

// ---- a cache of frames

Result<void> MemoryBudget::start(const Options& options, uint64_t available_bytes) {
  options_ = options;
  is_auto_ = options.given_bytes == kAutoBudget;
  const uint64_t allowed = is_auto_ ? most_of(available_bytes) : options.given_bytes;
  most_bytes_ = allowed / set_bytes_ * set_bytes_;
  if (most_bytes_ == 0) return Errno{ENOMEM};
  given_bytes_.store(most_bytes_, kRelaxed);
  const uint64_t first =
      is_auto_ ? budget_of(MemoryUse::kFirstFrames, available_bytes) : UINT64_MAX;
  steady_.set(std::min(most_bytes_, first));
  return {};
}

uint64_t MemoryBudget::most_of(uint64_t room_bytes) const {
  const bool takes_all = options_.reclaimable && !is_beside_page_cache();
  return budget_of(takes_all ? MemoryUse::kReclaimableFrames : MemoryUse::kFrames, room_bytes);
}

uint64_t MemoryBudget::whole_frames(uint64_t bytes) const {
  const uint64_t frame_bytes = set_bytes_ / kCacheWaysMax;
  return bytes / frame_bytes * frame_bytes;
}

MemoryBudget::Frames MemoryBudget::most() const {
  return {.kept_bytes = most_bytes_,
          .prefetched_bytes = prefetch_budget_of(most_bytes_, options_.prefetch_bytes_min)};
}

MemoryBudget::Frames MemoryBudget::limits() const {
  const uint64_t budget = is_paused_.load(kRelaxed) ? 0 : bytes();
  const uint64_t prefetch = prefetch_budget_of(budget, options_.prefetch_bytes_min);
  const bool is_part = !is_auto_ && has_prefetches_.load(kRelaxed);
  return {.kept_bytes = is_part ? budget - prefetch : budget, .prefetched_bytes = prefetch};
}

bool MemoryBudget::count_read(uint64_t bytes) {
  if (!depends_on_memory()) return false;
  const uint64_t step = std::max(this->bytes() / 8, kCheckBytesMin);
  if (unchecked_bytes_.fetch_add(bytes, kRelaxed) + bytes < step) return false;
  const uint64_t read_bytes = unchecked_bytes_.exchange(0, kRelaxed);
  if (read_bytes < step) return false;  // another thread looks
  steady_.count_read(read_bytes);
  return true;
}

bool MemoryBudget::adjust(uint64_t available_bytes, const Frames& held) {
  if (is_paused_.load(kRelaxed)) return false;
  return is_auto_ ? follow_memory(available_bytes, held) : keep_given(available_bytes, held);
}

bool MemoryBudget::follow_memory(uint64_t available_bytes, const Frames& held) {
  if (available_bytes == UINT64_MAX) return false;
  const uint64_t both = most_of(available_bytes + held.kept_bytes + held.prefetched_bytes);
  uint64_t room = whole_frames(std::min(most_bytes_, less(both, held.prefetched_bytes)));
  if (has_reclaims_.exchange(false, kRelaxed)) room = std::min(room, bytes() / 2);
  return steady_.adjust(room);
}

bool MemoryBudget::keep_given(uint64_t available_bytes, const Frames& held) {
  uint64_t budget = given_bytes_.load(kRelaxed);
  if (depends_on_memory() && available_bytes != UINT64_MAX) {
    const uint64_t room = available_bytes + held.kept_bytes + held.prefetched_bytes;
    budget = std::min(budget, whole_frames(budget_of(MemoryUse::kGivenFrames, room)));
  }
  const bool changes = budget != bytes();
  steady_.set(budget);
  return changes;
}

void MemoryBudget::set_given(uint64_t bytes) {
  given_bytes_.store(std::min(bytes, most_bytes_), kRelaxed);
}

bool MemoryBudget::set_beside_page_cache(bool beside, uint64_t available_bytes,
                                         const Frames& held) {
  if (is_beside_page_cache_.exchange(beside, kRelaxed) == beside) return false;
  bool changes = false;
  if (is_auto_ && available_bytes != UINT64_MAX) {  // as at the start
    const uint64_t room = available_bytes + held.kept_bytes + held.prefetched_bytes;
    const uint64_t first = std::min(most_bytes_, budget_of(MemoryUse::kFirstFrames, room));
    changes = first != bytes();
    steady_.set(first);
  }
  return adjust(available_bytes, held) || changes;
}

bool MemoryBudget::begin_prefetch() {
  return !has_prefetches_.load(kRelaxed) && !has_prefetches_.exchange(true, kRelaxed);
}

}  // namespace graphlane
