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
  VertexArray<VertexId> labels(run.vertex_count());
  std::iota(labels.begin(), labels.end(), VertexId{0});
  run.engine.frontier().activate_all();
  if (auto done = run.engine.propagate(Components{}, std::span(labels), /*both_ways=*/true); !done) return done.error();
  std::vector<uint32_t> sizes(labels.size());
  for (const VertexId label : labels) ++sizes[label];
  uint64_t count = 0;
  uint32_t largest = 0;
  for (const uint32_t size : sizes) {
    count += size > 0;
    largest = std::max(largest, size);
  }
  AlgorithmResult result;
  result.summary = {{"components", count}, {"largest", largest}};
  if (run.wants_values) result.columns = {{"component", std::vector<VertexId>(labels.begin(), labels.end())}};
  return result;
}

}  // namespace graphlane::hybrid
