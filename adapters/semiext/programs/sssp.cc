// Single-source shortest paths: a vertex with a new, lower distance tells its out-neighbours
// (Bellman-Ford over the frontier). Distances are float64 sums of the float32 weights along a path,
// from the source on; the smallest sum is the same in whichever order it is found. A graph without
// weights has 1 on each arc.
#include <limits>

#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

constexpr double kUnreached = std::numeric_limits<double>::infinity();

class ShortestPaths {
 public:
  ShortestPaths(const Graph& graph, VertexId source) : distance_(graph.vertex_count(), kUnreached) {
    distance_[source] = 0;
  }

  void run(Engine<ShortestPaths>::Context& ctx, VertexId v) {
    ctx.request_vertex(v, v, EdgeSide::kOut, /*weights=*/true);
  }

  void run_on_vertex(Engine<ShortestPaths>::Context& ctx, VertexId v, const ListView& list) {
    const double here = load_shared(distance_[v]);
    for (size_t i = 0; i < list.neighbours.size(); ++i) {
      const double weight = list.weights.empty() ? 1.0 : list.weights[i];
      if (!(weight >= 0)) {
        ctx.fail(make_error(
            EINVAL,
            "{}: the arc from {} to {} has the weight {}: shortest paths need weights from 0 on",
            ctx.graph().path(), v, list.neighbours[i], weight));
        return;
      }
      const VertexId u = list.neighbours[i];
      if (lower_shared(distance_[u], here + weight)) ctx.activate_vertex(u);
    }
  }

  AlgorithmResult result(bool wants_values) {
    uint64_t reached = 0;
    double farthest = 0;
    for (const double distance : distance_) {
      if (distance == kUnreached) continue;
      ++reached;
      farthest = std::max(farthest, distance);
    }
    AlgorithmResult result{.unreached = "infinity"};
    result.summary = {{"reached", reached}, {"farthest", farthest}};
    if (wants_values) {
      result.add_column("distance", std::vector<double>(distance_.begin(), distance_.end()));
    }
    return result;
  }

 private:
  VertexArray<double> distance_;
};

}  // namespace

Outcome<AlgorithmResult> run_sssp(const ProgramRun& run) {
  const auto sources = sources_of(run.options, run.graph.vertex_count(), run.graph.path());
  if (!sources) return sources.error();
  if (sources->empty()) {
    AlgorithmResult empty;
    empty.summary = {{"reached", 0}, {"farthest", 0.0}};
    if (run.wants_values) empty.add_column("distance", std::vector<double>());
    return empty;
  }
  ShortestPaths paths(run.graph, sources->front());
  Engine<ShortestPaths> engine(run.graph, run.pool, paths);
  engine.activate_vertices({&sources->front(), 1});
  return run_program(run, "sssp", engine, [&] { return paths.result(run.wants_values); });
}

}  // namespace graphlane::semiext
