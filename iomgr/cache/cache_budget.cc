// FrameCache keeps within its budget.
#include "iomgr/base/memory_order.h"
#include "iomgr/base/sys.h"
#include "iomgr/cache/cache.h"

namespace graphlane {
namespace {

// MADV_REMOVE is for shared memory (a memfd), where MADV_DONTNEED would only unmap.
int free_memory(std::byte* memory, uint64_t bytes) {
  const int saved_errno = errno;
  int error = 0;
  if (sys::madvise(memory, bytes, MADV_REMOVE) != 0) {
    error = errno == EINVAL ? 0 : errno;  // EINVAL: private memory
    if (sys::madvise(memory, bytes, MADV_DONTNEED) != 0) error = errno;
  }
  errno = saved_errno;
  return error;
}

}  // namespace

Result<void> FrameCache::resize(uint64_t budget_bytes) {
  const uint64_t frames = budget_bytes / frame_bytes_;
  budget_frames_.store(frames < frame_count_ ? static_cast<uint32_t>(frames) : frame_count_,
                       relaxed);
  int error = 0;
  for (uint32_t set_index = 0; set_index < set_count_; ++set_index) {
    SetView set = view(set_index);
    set.set.lock.lock();
    set.way_limit = way_limit(set_index);
    const int failed = shrink(set);
    set.set.lock.unlock();
    if (error == 0) error = failed;
  }
  if (error != 0) return Errno{error};
  return {};
}

// Reclaims unpinned frames until the set is within its limit. 0 or an errno.
int FrameCache::shrink(const SetView& set) {
  if (set.resident_count() <= set.way_limit) return 0;
  uint32_t excess = set.resident_count() - set.way_limit;
  const uint32_t unpinned = unpinned_ways(set);
  const uint32_t useless =
      set.ways_where(unpinned, [&](const CacheSlot& slot) { return dead(slot); });
  uint32_t taken = evict_some(set, useless, &excess);
  taken |= evict_some(set, unpinned & ~useless, &excess);
  taken |= doom(set, set.set.resident & ~taken, excess);
  return reclaim(set, taken);
}

// Claims candidates until there is no excess; returns the claimed ways.
uint32_t FrameCache::evict_some(const SetView& set, uint32_t candidates, uint32_t* excess) {
  SetPolicy policy(policy_, set);
  uint32_t taken = 0;
  for (uint32_t way = 0; *excess > 0 && evict(set, candidates & ~taken, policy, &way);) {
    taken |= bit(way);
    --*excess;
  }
  return taken;
}

// Marks pinned frames as doomed: find() misses them, and their last pin reclaims them.
// Returns the ways that lost their last pin meanwhile.
uint32_t FrameCache::doom(const SetView& set, uint32_t ways, uint32_t excess) {
  const uint32_t doomed =
      set.ways_where(ways, [](const CacheSlot& slot) { return slot.load().doomed(); });
  excess -= excess < count_of(doomed) ? excess : count_of(doomed);
  uint32_t taken = 0;
  for (ways &= ~doomed; excess > 0 && ways != 0; ways &= ways - 1, --excess) {
    CacheSlot& slot = set.slots[lowest(ways)];
    counters(set.set_index).evictions.fetch_add(dead(slot) ? 0 : 1, relaxed);
    // Acquire: earlier pin holders are done with the bytes.
    const FrameWord before{slot.word.fetch_or(FrameWord::kDoomed, std::memory_order_acquire)};
    if (before.pins() == 0 && slot.claim()) taken |= bit(lowest(ways));
  }
  return taken;
}

// Takes the memory of claimed frames, adjacent ones in one call. 0 or an errno.
int FrameCache::reclaim(const SetView& set, uint32_t ways) {
  int error = 0;
  set.set.resident &= static_cast<uint16_t>(~ways);
  counters(set.set_index).resident_frames.fetch_sub(count_of(ways), relaxed);
  const uint32_t first_of_set = first_frame(set.set_index);
  if (owner_ != nullptr) {
    for (uint32_t left = ways; left != 0; left &= left - 1) {
      owner_->on_reclaimed(first_of_set + lowest(left));
    }
  }
  std::byte* const begin = frames_ + first_of_set * frame_bytes_;
  while (ways != 0) {
    const uint32_t first = lowest(ways);
    const uint32_t count = lowest(~(ways >> first));
    const int failed = free_memory(begin + first * frame_bytes_, count * frame_bytes_);
    if (error == 0) error = failed;
    ways &= ~(((1u << count) - 1) << first);
  }
  return error;
}

void FrameCache::forget(const Pin& pin) {
  // Relaxed: the pin already ordered the caller's view of the bytes.
  slots_[pin.frame()].word.fetch_or(FrameWord::kDoomed, std::memory_order_relaxed);
}

// Reclaims a doomed frame's memory. If the lock is busy, the next reserve() does it.
void FrameCache::retire(uint32_t frame) {
  SetView set = view(set_of(frame));
  if (!set.set.lock.lock_patiently()) return;
  set.way_limit = way_limit(set.set_index);
  const uint32_t way = frame - first_frame(set.set_index);
  const FrameWord word = set.slots[way].load();
  if (word.doomed() && set.resident(way) && set.slots[way].claim()) {
    (void)reclaim(set, bit(way));
  }
  set.set.lock.unlock();
}

}  // namespace graphlane
