// PageRank by changes: a vertex whose rank has more to come takes it, and sends its neighbours
// their shares of it (FlashGraph §4). Vertices settle at different times, and fewer and fewer lists
// are read. To the fixpoint only: the shares that are never sent add up to less than --tolerance.
#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

constexpr double kDeltaTolerance = 1e-9;

class DeltaPageRank {
 public:
  using Message = double;  // rank to come

  DeltaPageRank(const Graph& graph, WorkerPool& pool, const AlgorithmOptions& options)
      : graph_(graph),
        options_(options),
        tolerance_(options.tolerance.value_or(kDeltaTolerance)),
        // The rest that stays below it, with all that would follow, is half of the tolerance over
        // all vertices.
        least_((1 - options.damping) * tolerance_ /
               (2 * std::max<double>(1, graph.vertex_count()))),
        rank_(graph.vertex_count()),
        coming_(graph.vertex_count(),
                (1 - options.damping) / std::max<double>(1, graph.vertex_count())),
        taken_(graph.vertex_count()),
        lost_(pool) {}

  void run(Engine<DeltaPageRank>::Context& ctx, VertexId v) {
    if (coming_[v] <= least_ && ctx.iteration() > 0) return;  // what woke it was taken before
    taken_[v] = coming_[v];
    coming_[v] = 0;
    rank_[v] += taken_[v];
    if (graph_.degree(v, EdgeSide::kOut) > 0) {
      ctx.request_vertex(v, v, EdgeSide::kOut);
    } else {
      lost_[ctx.worker()] += taken_[v];
    }
  }

  void run_on_vertex(Engine<DeltaPageRank>::Context& ctx, VertexId v, const ListView& list) {
    ctx.multicast_msg(list.neighbours,
                      options_.damping * taken_[v] / static_cast<double>(list.neighbours.size()));
  }

  void run_on_message(Engine<DeltaPageRank>::Context& ctx, VertexId v, double share) {
    coming_[v] += share;
    if (coming_[v] > least_) ctx.activate_vertex(v);
  }

  // The rank of vertices without out-arcs is dealt out to all once nothing else moves, or there is
  // much of it.
  void end_iteration(Engine<DeltaPageRank>& engine) {
    lost_.fold([&](double& lost) { lost_sum_ += std::exchange(lost, 0); });
    if (options_.dangling == Dangling::kNone) return;
    const double share = options_.damping * lost_sum_ / engine.vertex_count();
    if (share <= least_) return;
    lost_sum_ = 0;
    engine.for_all_vertices([&](VertexId v) { coming_[v] += share; });
    engine.activate_all();
  }

  const std::vector<double>& ranks() const { return rank_; }
  std::vector<double> take_ranks() { return std::move(rank_); }

 private:
  const Graph& graph_;
  const AlgorithmOptions& options_;
  const double tolerance_;
  const double least_;
  std::vector<double> rank_;
  std::vector<double> coming_;
  std::vector<double> taken_;  // in this iteration
  PerWorker<double> lost_;
  double lost_sum_ = 0;
};

}  // namespace

Outcome<AlgorithmResult> run_pagerank_delta(const ProgramRun& run) {
  if (run.options.iterations) {
    return make_error(EINVAL,
                      "pagerank-delta: goes to a --tolerance: `pagerank` takes --iterations");
  }
  if (run.options.tolerance == 0.0 || run.options.damping >= 1) {
    return make_error(
        EINVAL,
        "pagerank-delta: would not end: it needs a --tolerance above 0 and a --damping below 1");
  }
  DeltaPageRank pagerank(run.graph, run.pool, run.options);
  Engine<DeltaPageRank> engine(run.graph, run.pool, pagerank);
  engine.activate_all();
  return run_program(run, "pagerank-delta", engine, [&] {
    AlgorithmResult result;
    result.summary = {{"iterations", engine.iteration()}, {"top", top_ten(pagerank.ranks())}};
    if (run.wants_values) result.columns = {{"rank", pagerank.take_ranks()}};
    return result;
  });
}

}  // namespace graphlane::semiext
