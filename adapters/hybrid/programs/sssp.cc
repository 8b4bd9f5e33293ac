// Single-source shortest paths: a vertex with a new, lower distance tells its out-neighbours.
// Distances are float64 sums of the weights along a path, from the source on; the smallest sum is
// the same in whichever order it is found. A graph without weights has 1 on each arc.
#include <limits>

#include "adapters/hybrid/program.h"

namespace graphlane::hybrid {
namespace {

struct ShortestPaths {
  using Value = double;
  static constexpr bool kRunsNew = true;
  static constexpr const char* kWeightsFromZero = "a shortest path";
  static constexpr Value kUnreached = std::numeric_limits<double>::infinity();
  bool update(VertexId, Value from, Value& to, double weight) const {
    return lower_shared(to, from + weight);
  }
};

}  // namespace

Outcome<AlgorithmResult> run_sssp(const ProgramRun& run) {
  const auto sources = sources_of(run.options, run.vertex_count(), run.graph().path());
  if (!sources) return sources.error();
  auto distances = make_values_of<double>(run, ShortestPaths::kUnreached);
  if (!distances) return distances.error();
  if (!sources->empty()) {
    if (auto set = distances->set(sources->front(), 0); !set) return set.error();
    run.engine.frontier().activate(sources->front());
  }
  if (auto done = run.engine.propagate(ShortestPaths{}, *distances); !done) return done.error();
  uint64_t reached = 0;
  double farthest = 0;
  const auto look = [&](uint64_t, std::span<const double> some) {
    for (const double distance : some) {
      if (distance == ShortestPaths::kUnreached) continue;
      ++reached;
      farthest = std::max(farthest, distance);
    }
  };
  if (auto looked = for_each_interval(look, reading(*distances)); !looked) return looked.error();
  auto all = wanted_values(run, *distances);
  if (!all) return all.error();
  AlgorithmResult result{.unreached = "infinity"};
  result.summary = {{"reached", reached}, {"farthest", farthest}};
  if (run.wants_values) result.add_column("distance", std::move(*all));
  return result;
}

}  // namespace graphlane::hybrid
