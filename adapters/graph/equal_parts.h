// Parts of a sequence that cost about as much.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <vector>

namespace graphlane {

// Where `parts` parts of the items [0, count) begin, and the end of the last one. cost_before(i)
// ascends: the cost of all items before i, which may be `count`.
template <class CostBefore>
std::vector<uint64_t> equal_parts(uint64_t count, unsigned parts, const CostBefore& cost_before) {
  const uint64_t total = parts == 1 ? 0 : cost_before(count);
  std::vector<uint64_t> bounds = {0};
  for (unsigned part = 1; part < parts; ++part) {
    const auto items = std::views::iota(bounds.back(), count);
    bounds.push_back(*std::ranges::lower_bound(items, total / parts * part, {}, cost_before));
  }
  bounds.push_back(count);
  return bounds;
}

}  // namespace graphlane
