// Community detection by label propagation, as LDBC Graphalytics defines it: in each synchronous iteration a vertex
// takes the label that most of its neighbours have, the smallest of those. Each arc counts, so that a neighbour
// in both directions of a directed graph counts twice. 10 iterations, unless given.
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
  VertexArray<VertexId> label(run.vertex_count());
  std::iota(label.begin(), label.end(), VertexId{0});
  VertexArray<VertexId> next = label;
  PerWorker<std::vector<VertexId>> seen(run.engine.pool());
  const uint64_t iterations = run.vertex_count() == 0 ? 0 : run.options.iterations.value_or(kLabelIterations);
  for (uint64_t i = 0; i < iterations; ++i) {
    const auto done = run.engine.gather([&](unsigned worker, VertexId v, std::span<const VertexId> neighbours) {
      std::vector<VertexId>& labels = seen[worker];
      labels.clear();
      for (const VertexId u : neighbours) labels.push_back(label[u]);
      next[v] = most_frequent(labels);
    });
    if (!done) return done.error();
    label.swap(next);
  }
  std::vector<uint32_t> size(label.size());
  for (const VertexId one : label) ++size[one];
  AlgorithmResult result;
  result.summary = {{"communities", size.size() - static_cast<size_t>(std::count(size.begin(), size.end(), 0u))},
                    {"largest", size.empty() ? 0 : *std::max_element(size.begin(), size.end())}};
  if (run.wants_values) result.columns = {{"label", std::vector<VertexId>(label.begin(), label.end())}};
  return result;
}

}  // namespace graphlane::hybrid
