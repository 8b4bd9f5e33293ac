// PageRank: ranks that sum to 1, in synchronous iterations.
//
//   rank'(v) = (1 - d) / n + d * (sum over in-neighbours u of rank(u) / out-degree(u) + lost / n)
//
// `lost` is the rank of vertices without out-arcs (uniform), or 0 (none). Each vertex pulls over
// its in-list, so nothing is shared, and sums have one order: the result is the same whatever the
// threads.
#include <cmath>

#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

constexpr uint64_t kPageRankIterations = 30;
constexpr uint64_t kPageRankIterationsMax = 100'000;

class PageRank {
 public:
  PageRank(const Graph& graph, const AlgorithmOptions& options)
      : graph_(graph),
        options_(options),
        iterations_(options.iterations.value_or(options.tolerance ? kPageRankIterationsMax
                                                                  : kPageRankIterations)),
        rank_(graph.vertex_count(), 1.0 / std::max<double>(1, graph.vertex_count())),
        share_(graph.vertex_count()) {}

  uint64_t iterations() const { return options_.tolerance ? 0 : iterations_; }
  double moved() const { return moved_; }
  const std::vector<double>& rank() const { return rank_; }
  std::vector<double> take_rank() { return std::move(rank_); }

  Next begin_iteration(Engine<PageRank>& engine) {
    const bool settled =
        options_.tolerance && engine.iteration() > 0 && moved_ <= *options_.tolerance;
    if (settled || engine.iteration() >= iterations_ || engine.vertex_count() == 0) {
      return Next::kStop;
    }
    const double n = engine.vertex_count();
    const double lost =
        engine.pool().sum_blocks(engine.vertex_count(), [&](uint64_t begin, uint64_t end) {
          double lost_here = 0;
          for (uint64_t v = begin; v < end; ++v) {
            const uint64_t degree = graph_.degree(static_cast<VertexId>(v), EdgeSide::kOut);
            share_[v] = degree == 0 ? 0 : rank_[v] / static_cast<double>(degree);
            if (degree == 0) lost_here += rank_[v];
          }
          return lost_here;
        });
    base_ = (1 - options_.damping) / n;
    if (options_.dangling == Dangling::kUniform) base_ += options_.damping * lost / n;
    if (options_.tolerance) before_ = rank_;
    return Next::kAll;
  }

  void run(Engine<PageRank>::Context& ctx, VertexId v) {
    if (graph_.degree(v, EdgeSide::kIn) > 0) return ctx.request_vertex(v, v, EdgeSide::kIn);
    rank_[v] = base_;
  }

  void run_on_vertex(Engine<PageRank>::Context&, VertexId v, const ListView& list) {
    // Two sums: an addition would wait for the one before.
    const std::span<const VertexId> from = list.neighbours;
    double even = 0, odd = 0;
    size_t i = 0;
    for (; i + 1 < from.size(); i += 2) {
      even += share_[from[i]];
      odd += share_[from[i + 1]];
    }
    if (i < from.size()) even += share_[from[i]];
    rank_[v] = base_ + options_.damping * (even + odd);
  }

  void end_iteration(Engine<PageRank>& engine) {
    if (!options_.tolerance) return;
    moved_ = engine.pool().sum_blocks(rank_.size(), [&](uint64_t begin, uint64_t end) {
      double moved = 0;
      for (uint64_t v = begin; v < end; ++v) moved += std::abs(rank_[v] - before_[v]);
      return moved;
    });
  }

 private:
  const Graph& graph_;
  const AlgorithmOptions& options_;
  const uint64_t iterations_;
  std::vector<double> rank_;
  VertexArray<double> share_;   // of a vertex's rank, for each of its out-arcs
  std::vector<double> before_;  // where a tolerance is asked for
  double base_ = 0;
  double moved_ = 0;
};

}  // namespace

Outcome<AlgorithmResult> run_pagerank(const ProgramRun& run) {
  PageRank pagerank(run.graph, run.options);
  Engine<PageRank> engine(run.graph, run.pool, pagerank);
  return run_program(run, "pagerank", engine, [&] {
    AlgorithmResult result;
    result.summary = {{"iterations", engine.iteration()}};
    if (run.options.tolerance) result.summary["moved"] = pagerank.moved();
    result.summary["sum"] =
        run.pool.sum_blocks(pagerank.rank().size(), [&](uint64_t begin, uint64_t end) {
          double sum = 0;
          for (uint64_t v = begin; v < end; ++v) sum += pagerank.rank()[v];
          return sum;
        });
    result.summary["top"] = top_ten(pagerank.rank());
    if (run.wants_values) result.add_column("rank", pagerank.take_rank());
    return result;
  });
}

}  // namespace graphlane::semiext
