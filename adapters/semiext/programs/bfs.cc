// Breadth-first search from one vertex: levels and parents.
//
// Pushes along out-lists, and pulls over in-lists while the frontier has more arcs than are left to
// look at (Beamer). The parent is the lowest vertex of the level before, whichever way and with
// however many threads.
#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

// In memory a pull ends at the first neighbour in the frontier, and looks at one of so many.
constexpr uint64_t kPullGain = 15;

class Bfs {
 public:
  Bfs(const Graph& graph, WorkerPool& pool, VertexId source)
      : graph_(graph),
        level_(graph.vertex_count(), -1),
        parent_(graph.vertex_count(), kNoVertex),
        unreached_((uint64_t{graph.vertex_count()} + kBits - 1) / kBits, 0),
        found_(pool) {
    level_[source] = 0;
    parent_[source] = source;
    frontier_arcs_ = graph.degree(source, EdgeSide::kOut);
    arcs_left_ = graph.arc_count() - graph.degree(source, EdgeSide::kIn);
  }

  Next begin_iteration(Engine<Bfs>& engine) {
    if (engine.active_count() == 0) return Next::kStop;
    const bool pulled = std::exchange(
        pulls_, frontier_arcs_ > arcs_left_ / (graph_.is_in_memory() ? kPullGain : 1));
    if (!pulls_) return Next::kActive;
    if (!pulled) find_unreached(engine.pool());
    return Next::kSelected;
  }
  uint64_t selected(uint64_t word) const { return load_shared(unreached_[word]); }

  void run(Engine<Bfs>::Context& ctx, VertexId v) {
    ctx.request_vertex(v, v, pulls_ ? EdgeSide::kIn : EdgeSide::kOut);
  }

  void run_on_vertex(Engine<Bfs>::Context& ctx, VertexId v, const ListView& list) {
    const auto next = static_cast<int32_t>(ctx.iteration()) + 1;
    if (pulls_) {
      for (const VertexId u : list.neighbours) {
        if (!ctx.is_active(u)) continue;
        level_[v] = next;
        parent_[v] = u;
        std::atomic_ref(unreached_[v / kBits])
            .fetch_and(~(uint64_t{1} << v % kBits), std::memory_order_relaxed);
        return found(ctx, v);
      }
      return;
    }
    for (const VertexId u : list.neighbours) {
      const int32_t level = load_shared(level_[u]);
      if (level >= 0 && level < next) continue;
      if (level < 0) {
        store_shared(level_[u], next);
        found(ctx, u);
      }
      lower_shared(parent_[u], v);
    }
  }

  void end_iteration(Engine<Bfs>&) {
    frontier_arcs_ = 0;
    found_.fold([&](Found& found) {
      frontier_arcs_ += found.out_arcs;
      arcs_left_ -= std::min(arcs_left_, found.in_arcs);
      found = {};
    });
  }

  AlgorithmResult result(WorkerPool& pool, bool wants_values) {
    struct Sum {
      uint64_t reached = 0, arcs = 0;
      int32_t depth = 0;
    };
    PerWorker<Sum> sums(pool);
    pool.for_blocks(level_.size(), 1 << 14, [&](uint64_t begin, uint64_t end, unsigned worker) {
      Sum& sum = sums[worker];
      for (uint64_t v = begin; v < end; ++v) {
        if (level_[v] < 0) continue;
        ++sum.reached;
        sum.arcs += graph_.degree(static_cast<VertexId>(v), EdgeSide::kOut);
        sum.depth = std::max(sum.depth, level_[v]);
      }
    });
    Sum all;
    sums.fold([&](const Sum& sum) {
      all = {all.reached + sum.reached, all.arcs + sum.arcs, std::max(all.depth, sum.depth)};
    });
    AlgorithmResult result{.unreached = "9223372036854775807"};
    result.summary = {{"reached", all.reached}, {"depth", all.depth}, {"arcs", all.arcs}};
    if (!wants_values) return result;
    std::vector<int64_t> parents(parent_.size());
    for (size_t v = 0; v < parents.size(); ++v) {
      parents[v] = parent_[v] == kNoVertex ? -1 : int64_t{parent_[v]};
    }
    result.add_column("level", std::vector<int32_t>(level_.begin(), level_.end()));
    result.add_column("parent", std::move(parents));
    return result;
  }

 private:
  static constexpr uint64_t kBits = 64;

  // Sets a bit for each vertex that a pull may reach.
  void find_unreached(WorkerPool& pool) {
    pool.for_blocks(unreached_.size(), 1 << 10, [&](uint64_t begin, uint64_t end, unsigned) {
      for (uint64_t word = begin; word < end; ++word) {
        const uint64_t first = word * kBits;
        const uint64_t count = std::min<uint64_t>(kBits, level_.size() - first);
        uint64_t bits = 0;
        for (uint64_t i = 0; i < count; ++i) {
          const bool wanted = (level_[first + i] < 0) &
                              (graph_.degree(static_cast<VertexId>(first + i), EdgeSide::kIn) > 0);
          bits |= uint64_t{wanted} << i;
        }
        unreached_[word] = bits;
      }
    });
  }

  // Guides the choice; two workers may both count a vertex.
  struct Found {
    uint64_t out_arcs = 0;
    uint64_t in_arcs = 0;
  };

  void found(Engine<Bfs>::Context& ctx, VertexId u) {
    ctx.activate_vertex(u);
    Found& found = found_[ctx.worker()];
    const uint64_t out_arcs = graph_.degree(u, EdgeSide::kOut);
    found.out_arcs += out_arcs;
    found.in_arcs += graph_.is_directed() ? graph_.degree(u, EdgeSide::kIn) : out_arcs;
  }

  const Graph& graph_;
  VertexArray<int32_t> level_;  // -1: not reached
  VertexArray<VertexId> parent_;
  VertexArray<uint64_t> unreached_;  // a bit a vertex, while the search pulls
  PerWorker<Found> found_;
  uint64_t frontier_arcs_ = 0;
  uint64_t arcs_left_ = 0;  // into vertices that are not reached
  bool pulls_ = false;
};

}  // namespace

Outcome<AlgorithmResult> run_bfs(const ProgramRun& run) {
  const auto sources = sources_of(run.options, run.graph.vertex_count(), run.graph.path());
  if (!sources) return sources.error();
  if (sources->empty()) {
    AlgorithmResult empty;
    empty.summary = {{"reached", 0}, {"depth", 0}, {"arcs", 0}};
    if (run.wants_values) {
      empty.add_column("level", std::vector<int32_t>());
      empty.add_column("parent", std::vector<int64_t>());
    }
    return empty;
  }
  Bfs bfs(run.graph, run.pool, sources->front());
  Engine<Bfs> engine(run.graph, run.pool, bfs);
  engine.activate_vertices({&sources->front(), 1});
  return run_program(run, "bfs", engine, [&] { return bfs.result(run.pool, run.wants_values); });
}

}  // namespace graphlane::semiext
