// Core numbers, of the graph as an undirected one without loops and duplicates: the largest k such
// that the vertex is in a subgraph whose vertices all have k neighbours there. Vertices with fewest
// neighbours are removed first, and tell those that stay.
#include "adapters/semiext/neighbours.h"
#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

class Cores {
 public:
  using Message = NoMessage;  // "one of your neighbours was removed"

  Cores(const Graph& graph, WorkerPool& pool)
      : left_(graph.vertex_count()), core_(graph.vertex_count(), kNotRemoved), neighbours_(pool) {}

  Next begin_iteration(Engine<Cores>& engine) {
    if (engine.vertex_count() == 0) return Next::kStop;
    if (engine.iteration() == 0) return Next::kAll;  // counts neighbours
    if (engine.active_count() > 0) return Next::kActive;
    // None is left with k neighbours: the next k is the least that some have.
    uint32_t least = kNotRemoved;
    for (VertexId v = 0; v < left_.size(); ++v) {
      if (core_[v] == kNotRemoved) least = std::min(least, left_[v]);
    }
    if (least == kNotRemoved) return Next::kStop;
    k_ = std::max(k_, least);
    return Next::kAll;  // those with no more than k are removed
  }

  void run(Engine<Cores>::Context& ctx, VertexId v) {
    if (ctx.iteration() > 0) {
      if (core_[v] != kNotRemoved || left_[v] > k_) return;
      core_[v] = k_;
    }
    ctx.request_vertex(v, v, EdgeSide::kBoth);
  }

  void run_on_vertex(Engine<Cores>::Context& ctx, VertexId v, const ListView& list) {
    std::vector<Neighbour>& neighbours = neighbours_[ctx.worker()];
    merge_neighbours(v, list, neighbours);
    if (ctx.iteration() == 0) {
      left_[v] = static_cast<uint32_t>(neighbours.size());
      return;
    }
    for (const Neighbour& neighbour : neighbours) ctx.send_msg(neighbour.vertex, {});
  }

  void run_on_message(Engine<Cores>::Context& ctx, VertexId v, const Message&) {
    --left_[v];
    if (core_[v] == kNotRemoved && left_[v] == k_) ctx.activate_vertex(v);
  }

  uint32_t degeneracy() const {
    return core_.empty() ? 0 : *std::max_element(core_.begin(), core_.end());
  }
  uint64_t count_of(uint32_t core) const {
    return static_cast<uint64_t>(std::count(core_.begin(), core_.end(), core));
  }
  std::vector<uint32_t> take_cores() { return std::move(core_); }

 private:
  static constexpr uint32_t kNotRemoved = 0xffffffff;

  uint32_t k_ = 0;
  std::vector<uint32_t> left_;  // neighbours that were not removed
  std::vector<uint32_t> core_;
  PerWorker<std::vector<Neighbour>> neighbours_;
};

}  // namespace

Outcome<AlgorithmResult> run_kcore(const ProgramRun& run) {
  Cores cores(run.graph, run.pool);
  Engine<Cores> engine(run.graph, run.pool, cores);
  return run_program(run, "kcore", engine, [&] {
    AlgorithmResult result;
    result.summary = {{"largest_core", cores.degeneracy()},
                      {"vertices_in_it", cores.count_of(cores.degeneracy())}};
    if (run.wants_values) result.add_column("core", cores.take_cores());
    return result;
  });
}

}  // namespace graphlane::semiext
