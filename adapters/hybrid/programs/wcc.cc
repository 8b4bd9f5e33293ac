// Weakly connected components: each vertex takes the lowest number around it, against arcs, too.
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
  run.engine.frontier().activate_all();
  if (auto done = run.engine.propagate(Components{}, *labels, /*both_ways=*/true); !done) {
    return done.error();
  }
  return result_of_labels(run, *labels, "component", "components");
}

}  // namespace graphlane::hybrid
