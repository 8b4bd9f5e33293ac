#include "adapters/share/schedule/load_order.h"

#include <algorithm>

namespace graphlane::share {

std::vector<uint32_t> load_order(std::span<const PartitionSet* const> needs_of_jobs,
                                 uint32_t unit_count, LoadOrder how,
                                 std::span<const uint32_t> first_of_same) {
  // A partition's values stand at its first unit: the maximum over its units.
  std::vector<uint32_t> fewest(unit_count, UINT32_MAX);  // min of N_j(P): max of 1 / N_j(P)
  std::vector<uint32_t> job_count(unit_count);
  const auto place = [&](uint32_t unit) {
    return first_of_same.empty() ? unit : first_of_same[unit];
  };
  std::vector<uint32_t> jobs_of(unit_count);
  for (const PartitionSet* needs : needs_of_jobs) {
    const uint32_t count = needs->count();
    for (uint32_t unit = needs->next(0); unit < unit_count; unit = needs->next(unit + 1)) {
      ++jobs_of[unit];
      fewest[place(unit)] = std::min(fewest[place(unit)], count);
    }
  }
  std::vector<uint32_t> order;
  for (uint32_t unit = 0; unit < unit_count; ++unit) {
    if (jobs_of[unit] == 0) continue;
    order.push_back(unit);
    job_count[place(unit)] = std::max(job_count[place(unit)], jobs_of[unit]);
  }
  if (how == LoadOrder::kGraph) return order;
  // Compares job_count / fewest exactly, as fractions: floats would tell equal ones apart.
  std::stable_sort(order.begin(), order.end(), [&](uint32_t left, uint32_t right) {
    const uint32_t a = place(left);
    const uint32_t b = place(right);
    return uint64_t{job_count[a]} * fewest[b] > uint64_t{job_count[b]} * fewest[a];
  });
  return order;
}

}  // namespace graphlane::share
