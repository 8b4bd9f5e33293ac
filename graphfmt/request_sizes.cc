#include "graphfmt/request_sizes.h"

#include <algorithm>
#include <thread>

#include "iomgr/volume/volume.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kMiB = 1u << 20;
static_assert(kAutoDepthMin % kBlockSize == 0 && kMiB % kAutoDepthMin == 0);

}  // namespace

void RequestSizes::add(uint64_t size_bytes, uint64_t count) {
  if (count == 0) return;
  counts_[size_bytes] += count;
  count_ += count;
  total_bytes_ += size_bytes * count;
}

uint64_t RequestSizes::mean_bytes() const {
  return count_ == 0 ? 0 : (total_bytes_ + count_ - 1) / count_;
}

uint64_t RequestSizes::median_bytes() const {
  uint64_t seen = 0;
  for (const auto& [size, count] : counts_) {
    seen += count;
    if (seen >= (count_ + 1) / 2) return size;
  }
  return 0;
}

uint64_t RequestSizes::max_bytes() const { return counts_.empty() ? 0 : counts_.rbegin()->first; }

AutoDepth auto_depth(const RequestSizes& sizes, uint64_t swept_bytes, uint32_t device_count,
                     bool on_ssds, uint32_t thread_count) {
  AutoDepth depth{.bytes = kStripeDepthDefault, .reason = DepthReason::kUnknown};
  if (sizes.count() > 0) {
    const uint64_t mean = sizes.mean_bytes();
    const uint64_t rounded = round_up(mean, mean < kMiB ? kAutoDepthMin : kMiB);
    depth = {.bytes = std::min(rounded, round_up(sizes.max_bytes(), kBlockSize)),
             .reason = DepthReason::kRequests};
    const uint64_t spread = round_up(thread_count * mean / (kUnitsInFlight * device_count), kMiB);
    if (spread < depth.bytes) depth = {.bytes = spread, .reason = DepthReason::kThreads};
  }
  const uint64_t balanced =
      swept_bytes / (kUnitsPerDevice * device_count) / kBlockSize * kBlockSize;
  if (balanced < depth.bytes) depth = {.bytes = balanced, .reason = DepthReason::kBalance};
  if (on_ssds && kStripeDepthSsd < depth.bytes) {
    depth = {.bytes = kStripeDepthSsd, .reason = DepthReason::kSsds};
  }
  if (depth.bytes < kAutoDepthMin) depth = {.bytes = kAutoDepthMin, .reason = DepthReason::kLeast};
  return depth;
}

uint32_t engine_thread_count() { return std::max(1u, std::thread::hardware_concurrency()); }

// A request of b pages that begins o pages into a unit of s pages ends in unit
// ⌊(o + b - 1) / s⌋ from there. With b - 1 = q·s + r that is q, and for r of the s
// values of o one more.
double devices_touched(uint64_t request_bytes, uint64_t depth_bytes, uint32_t device_count) {
  if (request_bytes == 0) return 0;
  const uint64_t unit_pages = depth_bytes / kBlockSize;
  const uint64_t beyond = round_up(request_bytes, kBlockSize) / kBlockSize - 1;
  const double one_more =
      static_cast<double>(beyond % unit_pages) / static_cast<double>(unit_pages);
  const auto touched = [&](uint64_t units) {
    return static_cast<double>(std::min<uint64_t>(units, device_count));
  };
  const uint64_t units = beyond / unit_pages + 1;
  return touched(units) * (1 - one_more) + touched(units + 1) * one_more;
}

}  // namespace graphlane::graphfmt
