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
  auto all = wanted_values(run, labels);
  if (!all) return all.error();
  if (run.wants_values) result.add_column(column, std::move(*all));
  return result;
}

Outcome<AlgorithmResult> result_of_ranks(const ProgramRun& run, VertexValues<double>& ranks,
                                         Json summary) {
  const auto total = sum_over_vertices(run, [](double rank) { return rank; }, reading(ranks));
  if (!total) return total.error();
  TopTen top;
  const auto look = [&](uint64_t first, std::span<const double> some) { top.add(first, some); };
  if (auto looked = for_each_interval(look, reading(ranks)); !looked) return looked.error();
  auto all = wanted_values(run, ranks);
  if (!all) return all.error();
  AlgorithmResult result;
  result.summary = std::move(summary);
  result.summary["sum"] = *total;
  result.summary["top"] = top.json();
  if (run.wants_values) result.add_column("rank", std::move(*all));
  return result;
}

}  // namespace graphlane::hybrid
