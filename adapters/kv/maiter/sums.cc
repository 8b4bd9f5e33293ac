#include "adapters/kv/maiter/algorithms.h"
#include "adapters/kv/maiter/graph_run.h"

namespace graphlane::maiter {
namespace {

constexpr double kUsualTolerance = 1e-9;

// A sum needs an end.
Outcome<double> tolerance_of(std::string_view algorithm, const RunRequest& request) {
  if (request.options.iterations) {
    return make_error(EINVAL, "{}: goes to a --tolerance, and takes no --iterations here",
                      algorithm);
  }
  const double tolerance = request.options.tolerance.value_or(kUsualTolerance);
  if (tolerance <= 0) {
    return make_error(EINVAL, "{}: would not end: it needs a --tolerance above 0", algorithm);
  }
  return tolerance;
}

// The longest list: no eigenvalue is larger.
Outcome<size_t> longest_list(const std::string& path) {
  auto opened = kv::KvGraph::open(path, {}, false);
  if (!opened) return opened.error();
  kv::KvGraph& graph = **opened;
  size_t longest = 0;
  kv::KvReader reader(graph.store(graphfmt::Direction::kOut), {.depth = 16});
  const auto done =
      reader.for_each(0, [&](uint64_t vertex, std::span<const uint8_t> value) -> Outcome<void> {
        const auto parts = graph.pages().parse_value(value);
        if (!parts) {
          return make_error(EIO, "{}: the list of vertex {} is damaged", graph.path(), vertex);
        }
        longest = std::max(longest, parts->neighbour_count);
        return check_interrupt();
      });
  return done ? Outcome<size_t>(longest) : done.error();
}

}  // namespace

Outcome<AlgorithmResult> run_ranks(std::string_view algorithm, const RunRequest& request) {
  const auto tolerance = tolerance_of(algorithm, request);
  if (!tolerance) return tolerance.error();
  const double rest = 1 - request.options.damping;
  if (rest <= 0) {
    return make_error(EINVAL, "{}: would not end: it needs a --damping below 1", algorithm);
  }
  GraphRun run(algorithm, request);
  if (auto opened = run.open(false); !opened) return opened.error();
  PageRank op{.damping = request.options.damping, .vertex_count = run.vertex_count()};
  if (algorithm == "ppr") {
    auto sources = sources_of(request.options, op.vertex_count, request.graph);
    if (!sources) return sources.error();
    std::sort(sources->begin(), sources->end());
    sources->erase(std::unique(sources->begin(), sources->end()), sources->end());
    op.sources = std::move(*sources);
  }
  const bool is_uniform = request.options.dangling == Dangling::kUniform;
  // The factors: Σ|Δ| grows by 1 / (1 - d) until it has arrived, and by as much where the sum
  // becomes 1.
  auto finished = run.run(op, *tolerance * rest * rest, is_uniform);
  if (!finished) return finished.error();
  // The rank that vertices without out-arcs would send goes to where ranks begin: all ranks grow by
  // one factor.
  if (is_uniform) {
    double sum = 0;
    for (const double rank : finished->values) sum += rank;
    for (double& rank : finished->values) rank /= sum;
  }
  AlgorithmResult result = result_of(*finished);
  result.summary["top"] = top_ten(finished->values);
  add_counts(finished->counts, result);
  if (request.wants_values) {
    result.add_column("rank",
                      std::vector<double>(finished->values.begin(), finished->values.end()));
  }
  return result;
}

Outcome<AlgorithmResult> run_katz(std::string_view algorithm, const RunRequest& request) {
  const auto tolerance = tolerance_of(algorithm, request);
  if (!tolerance) return tolerance.error();
  GraphRun run(algorithm, request);
  if (auto opened = run.open(false); !opened) return opened.error();
  Katz op;
  if (request.kv.alpha) {
    op.alpha = *request.kv.alpha;
  } else {
    const auto longest = longest_list(request.graph);
    if (!longest) return longest.error();
    op.alpha = 1 / (1 + static_cast<double>(*longest));
  }
  auto finished = run.run(op, *tolerance, false);
  if (!finished) return finished.error();
  AlgorithmResult result = result_of(*finished);
  result.summary["alpha"] = op.alpha;
  result.summary["top"] = top_ten(finished->values);
  add_counts(finished->counts, result);
  if (request.wants_values) {
    result.add_column("centrality",
                      std::vector<double>(finished->values.begin(), finished->values.end()));
  }
  return result;
}

}  // namespace graphlane::maiter
