#include "iomgr/cache/kept_frames.h"

#include <algorithm>

#include "iomgr/base/memory_order.h"

namespace graphlane {
namespace {

// One frame in so many is sampled, and the least packed size that is expected, in parts of a frame.
constexpr uint32_t kSampleInterval = 16;
constexpr uint64_t kPackedParts = 4;

}  // namespace

Result<void> KeptFrames::start(uint64_t bytes_max, const Options& options) {
  bytes_max_ = bytes_max;
  options_ = options;
  return plain_.map(bytes_max, {.frames = {.frame_bytes = frame_bytes_, .policy = options.policy},
                                .reclaimable = options.reclaimable});
}

void KeptFrames::resize(uint64_t bytes) {
  const FutexLockGuard lock(lock_);
  limit_bytes_ = bytes;
  (void)current().resize(bytes);
}

CacheStats KeptFrames::stats() const {
  CacheStats stats = plain_->stats();
  if (&current() == &plain_) return stats;
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

void KeptFrames::sample(std::span<const std::byte> frame) {
  if (!options_.packs || &current() != &plain_ || frame.size() != frame_bytes_) return;
  if (sample_count_.fetch_add(1, relaxed) % kSampleInterval != 0) return;
  const uint64_t packed = packed_bytes(frame);
  if (!is_worth_packing(packed, frame_bytes_) || begins_to_pack_.exchange(true, relaxed)) return;
  begin_to_pack(std::max(packed, frame_bytes_ / kPackedParts));
}

void KeptFrames::begin_to_pack(uint64_t packed_frame_bytes) {
  const Result<void> mapped =
      packed_.map(bytes_max_, {.frames = {.frame_bytes = frame_bytes_, .policy = options_.policy},
                               .reclaimable = options_.reclaimable,
                               .packed_frame_bytes = packed_frame_bytes});
  if (!mapped) return;
  const FutexLockGuard lock(lock_);
  current_.store(&packed_, std::memory_order_release);
  (void)plain_.resize(0);
  (void)packed_.resize(limit_bytes_);
}

}  // namespace graphlane
