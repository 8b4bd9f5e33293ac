// PageCacheShare: how much of the page cache one use may take (memory_budget.h): prefetches, or kept
// files. A program that allocates between its reads leaves less than the kernel reports. Then pages
// are missing at their use, and the share shrinks.
//
// Threads: everything is safe from any. Relaxed throughout: it is an estimate.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/cache/memory_budget.h"

namespace graphlane {

class PageCacheShare {
 public:
  static constexpr uint64_t kMin = uint64_t{4} << 20;

  constexpr explicit PageCacheShare(MemoryUse use) : use_(use) {}

  // 0 until adjust() was called.
  uint64_t bytes() const;
  // The free memory has changed.
  void adjust(uint64_t available_bytes);
  // So many bytes of the use's pages were wanted now, and so many of them were missing.
  void record_use(uint64_t wanted_bytes, uint64_t missing_bytes);

 private:
  static constexpr uint64_t kLossShare = 8;  // shrinks when more than this share is missing
  static constexpr uint64_t kGrowthShare = 16;

  const MemoryUse use_;
  std::atomic<uint64_t> max_bytes_{0};
  std::atomic<uint64_t> bytes_{UINT64_MAX / 4};
};

}  // namespace graphlane
