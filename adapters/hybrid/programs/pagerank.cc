// PageRank: ranks that sum to 1, in synchronous iterations.
//
//   rank'(v) = (1 - d) / n + d * (sum over in-neighbours u of rank(u) / out-degree(u) + lost / n)
//
// `lost` is the rank of vertices without out-arcs (uniform), or 0 (none). Sums have one order: the
// result is the same whatever the threads.
#include <cmath>

#include "adapters/hybrid/program.h"

namespace graphlane::hybrid {
namespace {

constexpr uint64_t kPageRankIterations = 30;
constexpr uint64_t kPageRankIterationsMax = 100'000;

struct Ranks {
  VertexValues<uint32_t>& degree;  // of out-arcs
  VertexValues<double>& rank;
  VertexValues<double>& share;  // of a vertex's rank, for each of its out-arcs
  VertexValues<double>& sum;    // of shares that come in

  // How far all ranks moved together.
  Outcome<double> iterate(const ProgramRun& run) {
    const auto deal_out = [](uint32_t arcs, double old, double& for_each_arc, double& coming) {
      for_each_arc = arcs == 0 ? 0 : old / static_cast<double>(arcs);
      coming = 0;
      return arcs == 0 ? old : 0;
    };
    const auto lost = sum_over_vertices(run, deal_out, reading(degree), reading(rank),
                                        replacing(share), replacing(sum));
    if (!lost) return lost;
    const auto add = [](double from, double& to, double) { to += from; };
    if (auto done = run.engine.accumulate(share, sum, add); !done) return done.error();
    const double damping = run.options.damping, n = static_cast<double>(run.vertex_count());
    const double base =
        (1 - damping) / n + (run.options.dangling == Dangling::kUniform ? damping * *lost / n : 0);
    const auto take = [&](double& old, double came) {
      const double next = base + damping * came;
      return std::abs(next - std::exchange(old, next));
    };
    return sum_over_vertices(run, take, changing(rank), reading(sum));
  }
};

}  // namespace

Outcome<AlgorithmResult> run_pagerank(const ProgramRun& run) {
  const auto n = static_cast<double>(run.vertex_count());
  const AlgorithmOptions& options = run.options;
  auto values = make_values<uint32_t, double, double, double>(run.engine.value_space());
  if (!values) return values.error();
  auto& [degree, rank, share, sum] = *values;
  const auto degrees = run.graph().dual().read_degrees();
  if (!degrees) return degrees.error();
  const auto set = [&](uint64_t first, std::span<uint32_t> of_degree, std::span<double> of_rank) {
    degrees->copy(first, of_degree);
    std::fill(of_rank.begin(), of_rank.end(), 1 / n);
  };
  if (auto done = for_each_interval(set, replacing(degree), replacing(rank)); !done) {
    return done.error();
  }
  Ranks ranks{degree, rank, share, sum};
  const uint64_t most =
      options.iterations.value_or(options.tolerance ? kPageRankIterationsMax : kPageRankIterations);
  Outcome<double> moved = 0.0;
  uint64_t iterations = 0;
  const auto goes_on = [&] { return iterations == 0 || *moved > options.tolerance.value_or(-1); };
  for (; n > 0 && iterations < most && goes_on(); ++iterations) {
    if (moved = ranks.iterate(run); !moved) return moved.error();
  }
  Json summary = {{"iterations", iterations}};
  if (options.tolerance) summary["moved"] = *moved;
  return result_of_ranks(run, rank, std::move(summary));
}

}  // namespace graphlane::hybrid
