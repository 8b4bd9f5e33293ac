// Shared by the programs in programs/: their place in the registry.
#pragma once

#include <algorithm>
#include <numeric>

#include "adapters/graph/algorithm.h"
#include "adapters/hybrid/engine.h"

namespace graphlane::hybrid {

struct ProgramRun {
  Engine& engine;
  const AlgorithmOptions& options;
  bool wants_values;

  const DualGraph& graph() const { return engine.graph(); }
  uint64_t vertex_count() const { return engine.graph().vertex_count(); }
};

// One array of values for a program, all alike.
template <class T>
Outcome<VertexValues<T>> make_values_of(const ProgramRun& run, T value) {
  auto values = make_values<T>(run.engine.value_space());
  if (!values) return values.error();
  auto& [all] = *values;
  const auto fill = [&](uint64_t, std::span<T> some) {
    std::fill(some.begin(), some.end(), value);
  };
  if (auto filled = for_each_interval(fill, replacing(all)); !filled) return filled.error();
  return std::move(all);
}
// A vertex's own number.
inline Outcome<void> set_own_numbers(VertexValues<VertexId>& values) {
  const auto number = [](uint64_t first, std::span<VertexId> some) {
    std::iota(some.begin(), some.end(), static_cast<VertexId>(first));
  };
  return for_each_interval(number, replacing(values));
}

// The sum of each(element…) over all vertices, by all workers, in one order whatever the threads.
template <class Each, class... T>
Outcome<double> sum_over_vertices(const ProgramRun& run, const Each& each, ValueUse<T>... uses) {
  double sum = 0;
  const auto add = [&](uint64_t, auto first, auto... others) {
    sum += run.engine.pool().sum_blocks(first.size(), [&](uint64_t begin, uint64_t end) {
      double here = 0;
      for (uint64_t v = begin; v < end; ++v) here += each(first[v], others[v]...);
      return here;
    });
  };
  if (auto added = for_each_interval(add, uses...); !added) return added.error();
  return sum;
}
// All values, if they are wanted; else none.
template <class T>
Outcome<std::vector<T>> wanted_values(const ProgramRun& run, VertexValues<T>& values) {
  std::vector<T> all(run.wants_values ? run.vertex_count() : 0);
  const auto copy = [&](uint64_t first, std::span<const T> some) {
    std::copy(some.begin(), some.end(), all.begin() + static_cast<ptrdiff_t>(first));
  };
  if (!run.wants_values) return all;
  if (auto copied = for_each_interval(copy, reading(values)); !copied) return copied.error();
  return all;
}

// Counts equal labels: how many there are, called `name`, and the most that are equal; the values
// as `column`.
Outcome<AlgorithmResult> result_of_labels(const ProgramRun& run, VertexValues<VertexId>& labels,
                                          const char* column, const char* name);

// Adds their sum and the ten largest to the summary; the values as `rank`.
Outcome<AlgorithmResult> result_of_ranks(const ProgramRun& run, VertexValues<double>& ranks,
                                         Json summary);

using ProgramFunction = Outcome<AlgorithmResult> (*)(const ProgramRun& run);

Outcome<AlgorithmResult> run_bfs(const ProgramRun& run);
Outcome<AlgorithmResult> run_pagerank(const ProgramRun& run);
Outcome<AlgorithmResult> run_wcc(const ProgramRun& run);
Outcome<AlgorithmResult> run_sssp(const ProgramRun& run);
Outcome<AlgorithmResult> run_cdlp(const ProgramRun& run);

}  // namespace graphlane::hybrid
