// Scan statistics: the edges among a vertex and its neighbours, of the graph as an undirected one
// without loops and duplicates. For the ten largest alone, vertices run by descending degree. A
// vertex whose d neighbours could not have that many edges is not computed (FlashGraph §3.7).
#include <numeric>

#include "adapters/semiext/programs/triangle_program.h"
#include "iomgr/base/mutex.h"

namespace graphlane::semiext {
namespace {

class LargestScans {
 public:
  LargestScans(const Graph& graph, WorkerPool& pool)
      : scan_(graph.vertex_count()), arcs_(degrees_of(graph)), neighbourhoods_(pool) {
    neighbourhoods_.fold([&](Neighbourhoods& own) { own = Neighbourhoods(arcs_); });
  }

  static EngineOptions options(const Graph& graph) {
    EngineOptions options{.running_max = 1000,
                          .order = std::vector<VertexId>(graph.vertex_count())};
    std::iota(options.order.begin(), options.order.end(), 0u);
    std::stable_sort(options.order.begin(), options.order.end(), [&](VertexId a, VertexId b) {
      return graph.degree(a, EdgeSide::kBoth) > graph.degree(b, EdgeSide::kBoth);
    });
    return options;
  }

  Next begin_iteration(Engine<LargestScans>& engine) {
    return engine.iteration() == 0 && engine.vertex_count() > 0 ? Next::kAll : Next::kStop;
  }

  void run(Engine<LargestScans>::Context& ctx, VertexId v) {
    if (could_count(arcs_[v])) {
      neighbourhoods_[ctx.worker()].begin(ctx, v);
    }
  }

  void run_on_vertex(Engine<LargestScans>::Context& ctx, VertexId v, const ListView& list) {
    Neighbourhoods& own = neighbourhoods_[ctx.worker()];
    if (list.owner == v) {
      std::vector<Neighbour> members;
      merge_neighbours(v, list, members);
      if (members.empty() || !could_count(members.size())) {
        return own.leave(ctx, v);
      }
      own.open(ctx, v, members, 0, kNoVertex);
      return;
    }
    Neighbourhoods::Open& open = own.at(v);
    open.table.for_members_in(list, [&](const MemberTable::Member&, uint32_t, bool is_first) {
      open.count += is_first ? 1 : 0;
    });
    const uint64_t edges = open.members.size() + open.count / 2;  // each from both of its ends
    if (!own.done(ctx, v, list.owner, 0, kNoVertex)) add(v, edges);
  }

  const std::vector<double>& scans() const { return scan_; }

 private:
  // Relaxed: a value that is too low only costs time.
  bool could_count(uint64_t degree) const {
    const double most = static_cast<double>(degree) * static_cast<double>(degree + 1) / 2;
    return most >= tenth_.load(std::memory_order_relaxed);
  }
  void add(VertexId v, uint64_t edges) {
    scan_[v] = static_cast<double>(edges);
    MutexLock lock(mu_);
    largest_.insert(std::upper_bound(largest_.begin(), largest_.end(), scan_[v], std::greater<>()),
                    scan_[v]);
    if (largest_.size() < 10) return;
    largest_.resize(10);
    tenth_.store(largest_.back(), std::memory_order_relaxed);
  }

  std::vector<double> scan_;
  VertexArray<uint32_t> arcs_;  // of each vertex, in both directions
  PerWorker<Neighbourhoods> neighbourhoods_;
  std::atomic<double> tenth_{0};
  Mutex mu_;
  std::vector<double> largest_ GUARDED_BY(mu_);
};

AlgorithmResult scan_result(std::vector<double> scans, bool wants_values) {
  AlgorithmResult result;
  result.summary = {{"top", top_ten(scans)}};
  if (wants_values) {
    result.add_column("edges", std::vector<uint64_t>(scans.begin(), scans.end()));
  }
  return result;
}

}  // namespace

Outcome<AlgorithmResult> run_scan(const ProgramRun& run) {
  if (!run.wants_values) {
    LargestScans program(run.graph, run.pool);
    Engine<LargestScans> engine(run.graph, run.pool, program, LargestScans::options(run.graph));
    return run_program(run, "scan", engine, [&] { return scan_result(program.scans(), false); });
  }
  TriangleProgram program(run.graph, run.pool, TriangleProgram::Counts::kTriangles);
  Engine<TriangleProgram> engine(run.graph, run.pool, program, TriangleProgram::options(run.graph));
  return run_program(run, "scan", engine, [&] {
    std::vector<double> scans(run.graph.vertex_count());
    for (VertexId v = 0; v < scans.size(); ++v) {
      scans[v] =
          static_cast<double>(program.degrees()[v]) + static_cast<double>(program.counts()[v]);
    }
    return scan_result(std::move(scans), true);
  });
}

}  // namespace graphlane::semiext
