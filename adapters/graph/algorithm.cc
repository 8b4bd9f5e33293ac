#include "adapters/graph/algorithm.h"

#include <algorithm>

namespace graphlane {

Outcome<std::vector<uint32_t>> sources_of(const AlgorithmOptions& options, uint64_t vertex_count,
                                          const std::string& graph) {
  std::vector<uint32_t> sources;
  for (const uint64_t source : options.sources) {
    if (source >= vertex_count) {
      return make_error(EINVAL, "{}: has no vertex {}: its {} vertices begin with 0", graph, source,
                        vertex_count);
    }
    sources.push_back(static_cast<uint32_t>(source));
  }
  if (sources.empty() && vertex_count > 0) sources.push_back(0);
  return sources;
}

Json top_ten(std::span<const double> values) {
  constexpr size_t kTop = 10;
  std::vector<uint32_t> top;  // the largest first
  const auto before = [&](uint32_t a, uint32_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  for (uint32_t v = 0; v < values.size(); ++v) {
    if (top.size() == kTop && !before(v, top.back())) continue;
    top.insert(std::upper_bound(top.begin(), top.end(), v, before), v);
    if (top.size() > kTop) top.pop_back();
  }
  Json all = Json::array();
  for (const uint32_t v : top) all.push_back({{"vertex", v}, {"value", values[v]}});
  return all;
}

}  // namespace graphlane
