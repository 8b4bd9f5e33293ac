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
      : counts_(counts),
        degree_(counts == Counts::kNone ? 0 : graph.vertex_count()),
        count_(counts == Counts::kNone ? 0 : graph.vertex_count()),
        next_part_(graph.vertex_count()),
        arcs_(degrees_of(graph)),
        workers_(pool) {
    workers_.fold([&](Worker& own) { own.neighbourhoods = Neighbourhoods(arcs_); });
  }

  // Vertical parts as large as the cache: the lists of a part are read about once, and found in the
  // cache from then on.
  static EngineOptions options(const Graph& graph) {
    EngineOptions options;
    if (graph.is_in_memory()) return options;
    const uint64_t bytes = graph.list_bytes(EdgeSide::kOut) * (graph.is_directed() ? 2 : 1);
    options.vertical_parts =
        static_cast<uint32_t>(std::clamp<uint64_t>(bytes / graph.cache_bytes(), 1, kPartsMax));
    return options;
  }

  Next begin_iteration(Engine<TriangleProgram>& engine) {
    return engine.iteration() == 0 && engine.vertex_count() > 0 ? Next::kAll : Next::kStop;
  }

  void run(Engine<TriangleProgram>::Context& ctx, VertexId v) {
    if (next_part_[v] == ctx.part()) workers_[ctx.worker()].neighbourhoods.begin(ctx, v);
  }

  void run_on_vertex(Engine<TriangleProgram>::Context& ctx, VertexId v, const ListView& list) {
    Worker& own = workers_[ctx.worker()];
    if (list.owner == v) {
      std::vector<Neighbour> members;
      merge_neighbours(v, list, members);
      if (!degree_.empty()) degree_[v] = static_cast<uint32_t>(members.size());
      std::erase_if(members, [&](const Neighbour& u) { return !is_below(u.vertex, v); });
      const bool is_any_here = find_next_part(ctx, v, members);
      if (members.size() < 2 || !is_any_here) return own.neighbourhoods.leave(ctx, v);
      own.neighbourhoods.open(ctx, v, members, ctx.part_begin(), ctx.part_end());
      return;
    }
    count(own, v, list);
    own.neighbourhoods.done(ctx, v, list.owner, ctx.part_begin(), ctx.part_end());
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
  // Each part costs another look at all lists.
  static constexpr uint64_t kPartsMax = 64;
  static constexpr uint8_t kNoPart = 255;

  struct Worker {
    Neighbourhoods neighbourhoods;
    uint64_t total = 0;
  };

  bool is_below(VertexId a, VertexId b) const {
    return std::pair(arcs_[a], a) < std::pair(arcs_[b], b);
  }

  // Sets the part in which v is to run next. Returns whether it has a member in this one.
  bool find_next_part(const Engine<TriangleProgram>::Context& ctx, VertexId v,
                      std::span<const Neighbour> members) {
    const auto here = std::ranges::lower_bound(members, ctx.part_begin(), {}, &Neighbour::vertex);
    const auto behind = std::ranges::lower_bound(members, ctx.part_end(), {}, &Neighbour::vertex);
    const bool is_last = behind == members.end() || members.size() < 2;
    next_part_[v] = is_last ? kNoPart : static_cast<uint8_t>(ctx.part_of(behind->vertex));
    return here != behind;
  }

  void count(Worker& own, VertexId v, const ListView& list) {
    MemberTable& members = own.neighbourhoods.at(v).table;
    const VertexId u = list.owner;
    const std::pair rank_of_u(arcs_[u], u);
    const bool counts_arcs = counts_ == Counts::kArcs;
    const uint32_t arcs_to_u = counts_arcs ? members.find(u).arcs : 1;
    uint64_t found = 0, arcs_of_v = 0, arcs_of_others = 0;
    members.for_members_in(list, [&](const MemberTable::Member& w, uint32_t arcs, bool is_first) {
      if (std::pair(w.degree, w.vertex) >= rank_of_u) return;
      arcs_of_v += arcs;
      if (!is_first) return;
      ++found;
      arcs_of_others += w.arcs;
      if (counts_ != Counts::kNone) add_shared<uint64_t>(count_[w.vertex], arcs_to_u);
    });
    own.total += found;
    if (counts_ == Counts::kNone || found == 0) return;
    add_shared<uint64_t>(count_[v], counts_arcs ? arcs_of_v : found);
    add_shared<uint64_t>(count_[u], counts_arcs ? arcs_of_others : found);
  }

  const Counts counts_;
  std::vector<uint32_t> degree_;  // how many neighbours; none for Counts::kNone
  std::vector<uint64_t> count_;
  std::vector<uint8_t> next_part_;  // in which the vertex runs: it has members there, or may have
  VertexArray<uint32_t> arcs_;      // of each vertex, in both directions
  PerWorker<Worker> workers_;
};

}  // namespace graphlane::semiext
