// Triangles of the graph as an undirected one without loops and duplicates. Each is found once: by
// its vertex of highest rank (degree, then number), which looks at the lists of its neighbours of
// lower rank, the short ones.
#pragma once

#include "adapters/semiext/neighbourhoods.h"
#include "adapters/semiext/program.h"

namespace graphlane::semiext {

class TriangleProgram {
 public:
  // of each vertex; arcs: between its neighbours, LDBC's measure
  enum class Counts { kNone, kTriangles, kArcs };

  TriangleProgram(const Graph& graph, WorkerPool& pool, Counts counts)
      : graph_(graph),
        counts_(counts),
        degree_(graph.vertex_count()),
        count_(counts == Counts::kNone ? 0 : graph.vertex_count()),
        workers_(pool) {}

  // Vertical parts about as large as the cache: the lists of a part are read once, and found in the
  // cache from then on.
  static EngineOptions options(const Graph& graph) {
    EngineOptions options;
    if (graph.is_in_memory()) return options;
    const uint64_t bytes = graph.list_bytes(EdgeSide::kOut) * (graph.is_directed() ? 2 : 1);
    options.vertical_parts =
        static_cast<uint32_t>(std::clamp<uint64_t>(bytes / graph.cache_bytes(), 1, 8));
    return options;
  }

  Next begin_iteration(Engine<TriangleProgram>& engine) {
    return engine.iteration() == 0 && engine.vertex_count() > 0 ? Next::kAll : Next::kStop;
  }

  void run(Engine<TriangleProgram>::Context& ctx, VertexId v) {
    ctx.request_vertex(v, v, EdgeSide::kBoth);
  }

  void run_on_vertex(Engine<TriangleProgram>::Context& ctx, VertexId v, const ListView& list) {
    Worker& own = workers_[ctx.worker()];
    if (list.owner == v) {
      std::vector<Neighbour> members;
      merge_neighbours(v, list, members);
      if (ctx.part() == 0) degree_[v] = static_cast<uint32_t>(members.size());
      std::erase_if(members, [&](const Neighbour& u) { return !is_below(u.vertex, v); });
      if (members.size() < 2) return;
      own.neighbourhoods.open(v, std::move(members));
      own.neighbourhoods.ask(ctx, v, ctx.part_begin(), ctx.part_end());
      return;
    }
    count(own, v, list);
    own.neighbourhoods.done(ctx, v, ctx.part_begin(), ctx.part_end());
  }

  uint64_t total() {
    uint64_t total = 0;
    workers_.fold([&](const Worker& worker) { total += worker.total; });
    return total;
  }
  // The neighbours of each vertex, and the counts for it.
  const std::vector<uint32_t>& degrees() const { return degree_; }
  std::vector<uint64_t>& counts() { return count_; }

 private:
  struct Worker {
    Neighbourhoods neighbourhoods;
    std::vector<Neighbour> scratch;
    uint64_t total = 0;
  };

  bool is_below(VertexId a, VertexId b) const {
    const uint64_t of_a = graph_.degree(a, EdgeSide::kBoth),
                   of_b = graph_.degree(b, EdgeSide::kBoth);
    return of_a != of_b ? of_a < of_b : a < b;
  }

  void count(Worker& own, VertexId v, const ListView& list) {
    const std::vector<Neighbour>& members = own.neighbourhoods.at(v).members;
    const VertexId u = list.owner;
    const bool counts_arcs = counts_ == Counts::kArcs;
    uint64_t found = 0, arcs_of_others = 0;
    uint32_t arcs_to_u = 1;
    if (counts_arcs) {
      arcs_to_u =
          std::lower_bound(members.begin(), members.end(), u, [](const Neighbour& m, VertexId id) {
            return m.vertex < id;
          })->arcs;
    }
    uint64_t arcs_of_v = 0;
    intersect(members, u, list, own.scratch, [&](size_t i, uint32_t arcs) {
      const Neighbour& w = members[i];
      if (!is_below(w.vertex, u)) return;
      ++found;
      arcs_of_v += arcs;
      arcs_of_others += w.arcs;
      if (counts_ != Counts::kNone) {
        add_shared<uint64_t>(count_[w.vertex], counts_arcs ? arcs_to_u : 1);
      }
    });
    own.total += found;
    if (counts_ == Counts::kNone || found == 0) return;
    add_shared<uint64_t>(count_[v], counts_arcs ? arcs_of_v : found);
    add_shared<uint64_t>(count_[u], counts_arcs ? arcs_of_others : found);
  }

  const Graph& graph_;
  const Counts counts_;
  std::vector<uint32_t> degree_;
  std::vector<uint64_t> count_;
  PerWorker<Worker> workers_;
};

}  // namespace graphlane::semiext
