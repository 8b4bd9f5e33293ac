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

  Outcome<void> iterate(Engine& engine, const AlgorithmOptions& options, double& moved) {
    double lost = 0;
    const auto begin = [&](uint64_t, std::span<const uint32_t> degrees,
                           std::span<const double> ranks, std::span<double> shares,
                           std::span<double> sums) {
      lost += engine.pool().sum_blocks(ranks.size(), [&](uint64_t first, uint64_t end) {
        double lost_here = 0;
        for (uint64_t v = first; v < end; ++v) {
          shares[v] = degrees[v] == 0 ? 0 : ranks[v] / static_cast<double>(degrees[v]);
          if (degrees[v] == 0) lost_here += ranks[v];
          sums[v] = 0;
        }
        return lost_here;
      });
    };
    auto done =
        for_each_interval(begin, reading(degree), reading(rank), replacing(share), replacing(sum));
    if (!done) return done;
    const auto add = [](double from, double& to, double) { to += from; };
    if (done = engine.accumulate(share, sum, add); !done) return done;
    const auto n = static_cast<double>(rank.geometry().vertex_count());
    const double base = (1 - options.damping) / n +
                        (options.dangling == Dangling::kUniform ? options.damping * lost / n : 0);
    moved = 0;
    const auto end = [&](uint64_t, std::span<double> ranks, std::span<const double> sums) {
      moved += engine.pool().sum_blocks(ranks.size(), [&](uint64_t first, uint64_t last) {
        double moved_here = 0;
        for (uint64_t v = first; v < last; ++v) {
          const double next = base + options.damping * sums[v];
          moved_here += std::abs(next - std::exchange(ranks[v], next));
        }
        return moved_here;
      });
    };
    return for_each_interval(end, changing(rank), reading(sum));
  }
};

}  // namespace

Outcome<AlgorithmResult> run_pagerank(const ProgramRun& run) {
  const uint64_t n = run.vertex_count();
  const AlgorithmOptions& options = run.options;
  auto values = make_values<uint32_t, double, double, double>(run.engine.value_space());
  if (!values) return values.error();
  auto& [degree, rank, share, sum] = *values;
  Ranks ranks{degree, rank, share, sum};
  const auto degrees = run.graph().dual().read_degrees();
  if (!degrees) return degrees.error();
  const auto set = [&](uint64_t first, std::span<uint32_t> some, std::span<double> of_rank) {
    degrees->copy(first, some);
    std::fill(of_rank.begin(), of_rank.end(), 1.0 / static_cast<double>(n));
  };
  if (auto done = for_each_interval(set, replacing(degree), replacing(rank)); !done) {
    return done.error();
  }
  const uint64_t most = n == 0
                            ? 0
                            : options.iterations.value_or(options.tolerance ? kPageRankIterationsMax
                                                                            : kPageRankIterations);
  uint64_t iterations = 0;
  double moved = 0;
  for (; iterations < most && (iterations == 0 || !options.tolerance || moved > *options.tolerance);
       ++iterations) {
    if (auto done = ranks.iterate(run.engine, options, moved); !done) return done.error();
  }
  double total = 0;
  TopTen top;
  std::vector<double> all(run.wants_values ? n : 0);
  const auto look = [&](uint64_t first, std::span<const double> some) {
    total += run.engine.pool().sum_blocks(some.size(), [&](uint64_t begin, uint64_t end) {
      return std::accumulate(some.begin() + static_cast<ptrdiff_t>(begin),
                             some.begin() + static_cast<ptrdiff_t>(end), 0.0);
    });
    top.add(first, some);
    if (run.wants_values) {
      std::copy(some.begin(), some.end(), all.begin() + static_cast<ptrdiff_t>(first));
    }
  };
  if (auto done = for_each_interval(look, reading(rank)); !done) return done.error();
  AlgorithmResult result;
  result.summary = {{"iterations", iterations}};
  if (options.tolerance) result.summary["moved"] = moved;
  result.summary["sum"] = total;
  result.summary["top"] = top.json();
  if (run.wants_values) result.columns = {{"rank", std::move(all)}};
  return result;
}

}  // namespace graphlane::hybrid
