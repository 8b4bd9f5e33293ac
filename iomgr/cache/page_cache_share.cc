#include "iomgr/cache/page_cache_share.h"

#include <algorithm>

#include "iomgr/base/memory_order.h"

namespace graphlane {

uint64_t PageCacheShare::bytes() const {
  return std::min(max_bytes_.load(relaxed), bytes_.load(relaxed));
}

void PageCacheShare::adjust(uint64_t available_bytes) {
  max_bytes_.store(budget_of(use_, available_bytes), relaxed);
}

void PageCacheShare::record_use(uint64_t wanted_bytes, uint64_t missing_bytes) {
  const uint64_t now = bytes();
  const bool is_lost = missing_bytes > wanted_bytes / kLossShare;
  bytes_.store(is_lost ? std::max(now / 4 * 3, kMin) : now + wanted_bytes / kGrowthShare, relaxed);
}

}  // namespace graphlane
