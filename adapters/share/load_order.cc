#include "adapters/share/load_order.h"

#include <algorithm>

namespace graphlane::share {

std::vector<uint32_t> load_order(std::span<const PartitionSet* const> needs_of_jobs,
                                 uint32_t partition_count, LoadOrder how) {
  std::vector<uint32_t> fewest(partition_count, UINT32_MAX);  // min of N_j(P): max of 1 / N_j(P)
  std::vector<uint32_t> job_count(partition_count);
  for (const PartitionSet* needs : needs_of_jobs) {
    const uint32_t count = needs->count();
    for (uint32_t p = 0; count > 0 && p < partition_count; ++p) {
      if (!needs->has(p)) continue;
      ++job_count[p];
      fewest[p] = std::min(fewest[p], count);
    }
  }
  std::vector<uint32_t> order;
  for (uint32_t p = 0; p < partition_count; ++p) {
    if (job_count[p] > 0) order.push_back(p);
  }
  if (how == LoadOrder::kGraph) return order;
  // job_count / fewest as fractions: exact, where floats would make equals differ.
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return uint64_t{job_count[a]} * fewest[b] > uint64_t{job_count[b]} * fewest[a];
  });
  return order;
}

}  // namespace graphlane::share
