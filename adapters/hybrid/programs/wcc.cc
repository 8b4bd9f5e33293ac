// Weakly connected components, labelled by their lowest vertex: disjoint sets, in one sweep. Where
// labels are in a file, or a model is compared with others, each vertex takes the lowest label
// around it, along arcs and against them, until none changes (HUS-Graph §3.6).
#include "adapters/graph/disjoint_sets.h"
#include "adapters/hybrid/program.h"

namespace graphlane::hybrid {
namespace {

struct Components {
  using Value = VertexId;
  static constexpr bool kRunsNew = true;
  bool update(VertexId, Value from, Value& to, double) const { return lower_shared(to, from); }
};

}  // namespace

Outcome<AlgorithmResult> run_wcc(const ProgramRun& run) {
  auto labels = make_values_of<VertexId>(run, 0);
  if (!labels) return labels.error();
  if (auto set = set_own_numbers(*labels); !set) return set.error();
  if (labels->is_in_memory() && run.engine.model() == Model::kHybrid && !run.engine.accumulates()) {
    VertexId* const parents = labels->held(0);
    const auto join = [parents](VertexId source, VertexId target) {
      join_sets(parents, source, target);
    };
    if (auto done = run.engine.for_each_arc(join); !done) return done.error();
    compress_sets(parents, run.vertex_count(), run.engine.pool());
  } else {
    run.engine.frontier().activate_all();
    if (auto done = run.engine.propagate(Components{}, *labels, /*both_ways=*/true); !done) {
      return done.error();
    }
  }
  return result_of_labels(run, *labels, "component", "components");
}

}  // namespace graphlane::hybrid
