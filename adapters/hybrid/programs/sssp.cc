// Single-source shortest paths: a vertex with a new, lower distance tells its out-neighbours. Distances are float64 sums
// of the weights along a path, from the source on; the smallest sum is the same in whichever order it is found. A
// graph without weights has 1 on each arc.
#include <limits>

#include "adapters/hybrid/program.h"

namespace graphlane::hybrid {
namespace {

struct ShortestPaths {
  using Value = double;
  static constexpr bool kRunsNew = true;
  static constexpr const char* kWeightsFromZero = "a shortest path";
  static constexpr Value kUnreached = std::numeric_limits<double>::infinity();
  bool update(VertexId, Value from, Value& to, double weight) const { return lower_shared(to, from + weight); }
};

}  // namespace

Outcome<AlgorithmResult> run_sssp(const ProgramRun& run) {
  const auto sources = sources_of(run.options, run.vertex_count(), run.graph().path());
  if (!sources) return sources.error();
  VertexArray<double> distances(run.vertex_count(), ShortestPaths::kUnreached);
  if (!sources->empty()) {
    distances[sources->front()] = 0;
    run.engine.frontier().activate(sources->front());
  }
  if (auto done = run.engine.propagate(ShortestPaths{}, std::span(distances)); !done) return done.error();
  uint64_t reached = 0;
  double farthest = 0;
  for (const double distance : distances) {
    if (distance == ShortestPaths::kUnreached) continue;
    ++reached;
    farthest = std::max(farthest, distance);
  }
  AlgorithmResult result{.unreached = "infinity"};
  result.summary = {{"reached", reached}, {"farthest", farthest}};
  if (run.wants_values) result.columns = {{"distance", std::vector<double>(distances.begin(), distances.end())}};
  return result;
}

}  // namespace graphlane::hybrid
