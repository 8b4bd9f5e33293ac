// PageRank by changes: a vertex with rank to come takes it, and sends its neighbours their
// shares of it (FlashGraph §4). Vertices settle at different times, and fewer and fewer lists are
// read. To the fixpoint only: what is never sent adds up to less than --tolerance.
//
// All ranks begin with 1 / n in place of the (1 - d) / n that they get from outside. Sums are linear,
// so the first iteration's end takes the difference back. From then on changes have both signs, and
// most of what comes to a vertex cancels out. For that, what comes waits for the next iteration.
#include <cmath>

#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

constexpr double kDeltaTolerance = 1e-9;

class DeltaPageRank {
 public:
  using Message = double;  // a change of rank

  DeltaPageRank(const Graph& graph, WorkerPool& pool, const AlgorithmOptions& options)
      : graph_(graph),
        options_(options),
        left_max_((1 - options.damping) * options.tolerance.value_or(kDeltaTolerance)),
        // If no vertex has more than this to take, what is left adds up to half of left_max_.
        least_(left_max_ / (2 * std::max<double>(1, graph.vertex_count()))),
        rank_(graph.vertex_count()),
        waiting_(graph.vertex_count(), 1 / std::max<double>(1, graph.vertex_count())),
        coming_(graph.vertex_count()),
        lost_(pool) {}

  // The sum decides: a few vertices may have much to take while all together have little.
  Next begin_iteration(const Engine<DeltaPageRank>& engine) const {
    if (engine.iteration() == 0) return Next::kAll;
    return left_ <= left_max_ ? Next::kStop : Next::kSelected;
  }
  // A bit for each vertex from 64 * word on: whether it runs.
  uint64_t selected(uint64_t word) const {
    const uint64_t first = word * 64, end = std::min<uint64_t>(first + 64, waiting_.size());
    uint64_t bits = 0;
    for (uint64_t v = first; v < end; ++v) bits |= uint64_t{takes(v)} << (v - first);
    return bits;
  }

  void run(Engine<DeltaPageRank>::Context& ctx, VertexId v) {
    rank_[v] += waiting_[v];
    if (graph_.degree(v, EdgeSide::kOut) > 0) {
      ctx.request_vertex(v, v, EdgeSide::kOut);
    } else {
      lost_[ctx.worker()] += waiting_[v];
    }
  }

  void run_on_vertex(Engine<DeltaPageRank>::Context& ctx, VertexId v, const ListView& list) {
    const auto degree = static_cast<double>(list.neighbours.size());
    ctx.multicast_msg(list.neighbours, options_.damping * waiting_[v] / degree);
  }

  void run_on_message(Engine<DeltaPageRank>::Context&, VertexId v, double share) {
    coming_[v] += share;
  }

  // The rank of vertices without out-arcs is dealt out to all, if there is much of it.
  void end_iteration(Engine<DeltaPageRank>& engine) {
    const double n = engine.vertex_count();
    const bool is_first = engine.iteration() == 0;
    lost_.fold([&](double& lost) { lost_sum_ += std::exchange(lost, 0); });
    if (options_.dangling == Dangling::kNone) lost_sum_ = 0;
    double to_each = is_first ? -options_.damping / n : 0;
    if (std::abs(options_.damping * lost_sum_ / n) > least_) {
      to_each += options_.damping * std::exchange(lost_sum_, 0) / n;
    }
    left_ = options_.damping * std::abs(lost_sum_);
    left_ += engine.pool().sum_blocks(coming_.size(), [&](uint64_t begin, uint64_t end) {
      double left = 0;
      for (uint64_t v = begin; v < end; ++v) {
        const double kept = is_first || takes(v) ? 0 : waiting_[v];
        waiting_[v] = kept + std::exchange(coming_[v], 0) + to_each;
        left += std::abs(waiting_[v]);
      }
      return left;
    });
  }

  const std::vector<double>& ranks() const { return rank_; }
  std::vector<double> take_ranks() { return std::move(rank_); }

 private:
  bool takes(uint64_t v) const { return std::abs(waiting_[v]) > least_; }

  const Graph& graph_;
  const AlgorithmOptions& options_;
  const double left_max_;
  const double least_;
  std::vector<double> rank_;
  std::vector<double> waiting_;  // taken in this iteration by those that run
  std::vector<double> coming_;
  PerWorker<double> lost_;
  double lost_sum_ = 0;
  double left_ = 0;  // of changes to come, whatever their sign
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
  return run_program(run, "pagerank-delta", engine, [&] {
    AlgorithmResult result;
    result.summary = {{"iterations", engine.iteration()}, {"top", top_ten(pagerank.ranks())}};
    if (run.wants_values) result.add_column("rank", pagerank.take_ranks());
    return result;
  });
}

}  // namespace graphlane::semiext
