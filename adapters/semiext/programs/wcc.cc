// Weakly connected components: disjoint sets, in one pass over the out-lists. A component's label
// is its lowest vertex.
#include "adapters/graph/disjoint_sets.h"
#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

class Components {
 public:
  explicit Components(const Graph& graph)
      : is_directed_(graph.is_directed()), parent_(graph.vertex_count()) {}

  Next begin_iteration(Engine<Components>& engine) {
    if (engine.iteration() > 0) return Next::kStop;
    engine.for_all_vertices([&](VertexId v) { parent_[v] = v; });
    return Next::kAll;
  }

  void run(Engine<Components>::Context& ctx, VertexId v) {
    ctx.request_vertex(v, v, EdgeSide::kOut);
  }

  void run_on_vertex(Engine<Components>::Context&, VertexId v, const ListView& list) {
    for (const VertexId u : list.neighbours) {
      // An edge of an undirected graph is in the other list, too.
      if (!is_directed_ && u > v) return;
      join_sets(parent_.data(), v, u);
    }
  }

  VertexArray<VertexId>& labels() { return parent_; }

 private:
  const bool is_directed_;
  VertexArray<VertexId> parent_;
};

}  // namespace

Outcome<AlgorithmResult> run_wcc(const ProgramRun& run) {
  Components components(run.graph);
  Engine<Components> engine(run.graph, run.pool, components);
  return run_program(run, "wcc", engine, [&] {
    VertexArray<VertexId>& label = components.labels();
    compress_sets(label.data(), label.size(), run.pool);
    std::vector<uint32_t> size(label.size());
    for (const VertexId root : label) ++size[root];
    uint64_t count = 0;
    VertexId largest = 0;
    for (VertexId v = 0; v < label.size(); ++v) {
      count += size[v] > 0;
      if (size[v] > size[largest]) largest = v;
    }
    AlgorithmResult result;
    result.summary = {{"components", count}, {"largest", label.empty() ? 0 : size[largest]}};
    if (run.wants_values) {
      result.add_column("component", std::vector<VertexId>(label.begin(), label.end()));
    }
    return result;
  });
}

}  // namespace graphlane::semiext
