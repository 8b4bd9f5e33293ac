// PageRank: ranks that sum to 1, in synchronous iterations.
//
//   rank'(v) = (1 - d) / n + d * (sum over in-neighbours u of rank(u) / out-degree(u) + lost / n)
//
// `lost` is the rank of vertices without out-arcs (uniform), or 0 (none). Sums have one order: the result is the same
// whatever the threads.
#include <cmath>

#include "adapters/hybrid/program.h"

namespace graphlane::hybrid {
namespace {

constexpr uint64_t kPageRankIterations = 30;
constexpr uint64_t kPageRankIterationsMax = 100'000;

struct Ranks {
  VertexArray<uint32_t> degree;  // of out-arcs
  VertexArray<double> rank;
  VertexArray<double> share;  // of a vertex's rank, for each of its out-arcs
  VertexArray<double> sum;    // of shares that come in

  Outcome<void> iterate(Engine& engine, const AlgorithmOptions& options, double& moved) {
    const auto n = static_cast<double>(rank.size());
    const double lost = engine.pool().sum_blocks(rank.size(), [&](uint64_t begin, uint64_t end) {
      double lost_here = 0;
      for (uint64_t v = begin; v < end; ++v) {
        share[v] = degree[v] == 0 ? 0 : rank[v] / static_cast<double>(degree[v]);
        if (degree[v] == 0) lost_here += rank[v];
        sum[v] = 0;
      }
      return lost_here;
    });
    const auto add = [](double from, double& to, double) { to += from; };
    if (auto done = engine.accumulate(std::span<const double>(share), std::span(sum), add); !done) return done;
    const double base = (1 - options.damping) / n + (options.dangling == Dangling::kUniform ? options.damping * lost / n : 0);
    moved = engine.pool().sum_blocks(rank.size(), [&](uint64_t begin, uint64_t end) {
      double moved_here = 0;
      for (uint64_t v = begin; v < end; ++v) {
        const double next = base + options.damping * sum[v];
        moved_here += std::abs(next - std::exchange(rank[v], next));
      }
      return moved_here;
    });
    return {};
  }
};

}  // namespace

Outcome<AlgorithmResult> run_pagerank(const ProgramRun& run) {
  const uint64_t n = run.vertex_count();
  const AlgorithmOptions& options = run.options;
  Ranks ranks{.degree = VertexArray<uint32_t>(n), .rank = VertexArray<double>(n, 1.0 / std::max<double>(1, static_cast<double>(n))),
              .share = VertexArray<double>(n), .sum = VertexArray<double>(n)};
  const uint64_t most = n == 0 ? 0 : options.iterations.value_or(options.tolerance ? kPageRankIterationsMax : kPageRankIterations);
  if (most > 0) {
    if (auto done = run.graph().dual().read_degrees(ranks.degree); !done) return done.error();
  }
  uint64_t iterations = 0;
  double moved = 0;
  for (; iterations < most && (iterations == 0 || !options.tolerance || moved > *options.tolerance); ++iterations) {
    if (auto done = ranks.iterate(run.engine, options, moved); !done) return done.error();
  }
  AlgorithmResult result;
  result.summary = {{"iterations", iterations}};
  if (options.tolerance) result.summary["moved"] = moved;
  result.summary["sum"] = run.engine.pool().sum_blocks(n, [&](uint64_t begin, uint64_t end) {
    return std::accumulate(ranks.rank.begin() + static_cast<ptrdiff_t>(begin), ranks.rank.begin() + static_cast<ptrdiff_t>(end), 0.0);
  });
  result.summary["top"] = top_ten(ranks.rank);
  if (run.wants_values) result.columns = {{"rank", std::vector<double>(ranks.rank.begin(), ranks.rank.end())}};
  return result;
}

}  // namespace graphlane::hybrid
