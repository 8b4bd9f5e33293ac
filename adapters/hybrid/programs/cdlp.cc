// Community detection by label propagation, as LDBC Graphalytics defines it: in each synchronous
// iteration a vertex takes the label that most of its neighbours have, the smallest of those. Each
// arc counts, so that a neighbour in both directions of a directed graph counts twice. 10
// iterations, unless given.
#include <algorithm>

#include "adapters/hybrid/program.h"

namespace graphlane::hybrid {
namespace {

constexpr uint64_t kLabelIterations = 10;

// The most frequent label, the smallest of those. Sorts them.
VertexId most_frequent(std::vector<VertexId>& labels) {
  std::sort(labels.begin(), labels.end());
  VertexId best = labels.front();
  size_t best_count = 0;
  for (size_t i = 0, end = 0; i < labels.size(); i = end) {
    while (end < labels.size() && labels[end] == labels[i]) ++end;
    if (end - i <= best_count) continue;
    best_count = end - i;
    best = labels[i];
  }
  return best;
}

}  // namespace

Outcome<AlgorithmResult> run_cdlp(const ProgramRun& run) {
  auto values = make_values<VertexId, VertexId>(run.engine.value_space());
  if (!values) return values.error();
  auto& [label, next] = *values;
  if (auto set = set_own_numbers(label); !set) return set.error();
  // vertices without neighbours keep theirs
  if (auto set = set_own_numbers(next); !set) return set.error();
  PerWorker<std::vector<VertexId>> seen(run.engine.pool());
  const uint64_t iterations =
      run.vertex_count() == 0 ? 0 : run.options.iterations.value_or(kLabelIterations);
  for (uint64_t i = 0; i < iterations; ++i) {
    const auto begin = [&](uint32_t interval) { return next.change(interval); };
    const auto give = [&](unsigned worker, const HeldValues<VertexId>& own, uint32_t v,
                          std::span<const VertexId> of_neighbours) {
      std::vector<VertexId>& labels = seen[worker];
      labels.assign(of_neighbours.begin(), of_neighbours.end());
      own[v] = most_frequent(labels);
    };
    if (auto done = run.engine.gather(label, begin, give); !done) return done.error();
    std::swap(label, next);
  }
  return result_of_labels(run, label, "label", "communities");
}

}  // namespace graphlane::hybrid
