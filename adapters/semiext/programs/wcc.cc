// Weakly connected components: union-find, in one pass over the out-lists (Afforest's hooking,
// Sutton et al.). A component's label is its lowest vertex.
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
      hook(v, u);
    }
  }

  // Every vertex's parent is its root.
  void compress(Engine<Components>& engine) {
    engine.for_all_vertices([&](VertexId v) {
      VertexId root = load_shared(parent_[v]);
      while (root != load_shared(parent_[root])) root = load_shared(parent_[root]);
      store_shared(parent_[v], root);
    });
  }

  const VertexArray<VertexId>& labels() const { return parent_; }

 private:
  // A root is hooked below a lower vertex only: no cycles.
  void hook(VertexId a, VertexId b) {
    VertexId left = load_shared(parent_[a]);
    VertexId right = load_shared(parent_[b]);
    while (left != right) {
      const VertexId high = std::max(left, right);
      const VertexId low = std::min(left, right);
      VertexId above = load_shared(parent_[high]);
      if (above == low) return;
      if (above == high && std::atomic_ref<VertexId>(parent_[high])
                               .compare_exchange_strong(above, low, std::memory_order_relaxed)) {
        return;
      }
      left = load_shared(parent_[load_shared(parent_[high])]);
      right = load_shared(parent_[low]);
    }
  }

  const bool is_directed_;
  VertexArray<VertexId> parent_;
};

}  // namespace

Outcome<AlgorithmResult> run_wcc(const ProgramRun& run) {
  Components components(run.graph);
  Engine<Components> engine(run.graph, run.pool, components);
  return run_program(run, "wcc", engine, [&] {
    components.compress(engine);
    const VertexArray<VertexId>& label = components.labels();
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
