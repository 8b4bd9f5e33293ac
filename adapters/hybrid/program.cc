#include "adapters/hybrid/program.h"

#include <algorithm>

namespace graphlane::hybrid {

Outcome<AlgorithmResult> result_of_labels(const ProgramRun& run, VertexValues<VertexId>& labels,
                                          const char* column, const char* name) {
  uint64_t count = 0;
  uint32_t largest = 0;
  const auto counted = count_values(labels, [&](uint64_t, uint32_t size) {
    ++count;
    largest = std::max(largest, size);
  });
  if (!counted) return counted.error();
  AlgorithmResult result;
  result.summary = {{name, count}, {"largest", largest}};
  if (!run.wants_values) return result;
  std::vector<VertexId> all(run.vertex_count());
  const auto copy = [&](uint64_t first, std::span<const VertexId> some) {
    std::copy(some.begin(), some.end(), all.begin() + static_cast<ptrdiff_t>(first));
  };
  if (auto copied = for_each_interval(copy, reading(labels)); !copied) return copied.error();
  result.columns = {{column, std::move(all)}};
  return result;
}

}  // namespace graphlane::hybrid
