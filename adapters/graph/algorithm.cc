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

void TopTen::add(uint64_t first, std::span<const double> values) {
  constexpr size_t kTop = 10;
  const auto is_larger = [](const auto& a, const auto& b) { return a.first > b.first; };
  for (size_t i = 0; i < values.size(); ++i) {
    if (top_.size() == kTop && !(values[i] > top_.back().first)) continue;
    const std::pair<double, uint64_t> one(values[i], first + i);
    top_.insert(std::upper_bound(top_.begin(), top_.end(), one, is_larger), one);
    if (top_.size() > kTop) top_.pop_back();
  }
}

Json TopTen::json() const {
  Json all = Json::array();
  for (const auto& [value, vertex] : top_) all.push_back({{"vertex", vertex}, {"value", value}});
  return all;
}

Json top_ten(std::span<const double> values) {
  TopTen top;
  top.add(0, values);
  return top.json();
}

}  // namespace graphlane
