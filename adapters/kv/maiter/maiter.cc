#include "adapters/kv/maiter/maiter.h"

#include <array>
#include <chrono>
#include <new>

#include "adapters/kv/maiter/run_workers.h"
#include "graphfmt/output/npy.h"

namespace graphlane::maiter {
namespace {

constexpr double kUsualTolerance = 1e-9;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A graph that is open, and what a run on it took.
class GraphRun {
 public:
  GraphRun(std::string_view algorithm, const RunRequest& request)
      : algorithm_(algorithm), request_(request), threads_(usable_threads(request.threads)) {}

  // With workers, each of them opens the graph: here only its index is loaded, and no thread is
  // started.
  Outcome<void> open(bool wants_in) {
    const auto begin = std::chrono::steady_clock::now();
    if (request_.kv.workers > 1) {
      auto pages = Pages::open(request_.graph);
      if (!pages) return pages.error();
      pages_ = std::move(*pages);
      return {};
    }
    auto graph = kv::KvGraph::open(request_.graph, kv_options(request_, threads_), wants_in);
    if (!graph) return graph.error();
    graph_ = std::move(*graph);
    open_seconds_ = seconds_since(begin);
    return {};
  }

  uint64_t vertex_count() const { return graph_ ? graph_->vertex_count() : pages_->vertex_count(); }

  template <class Op>
  Outcome<Finished> run(const Op& op, double tolerance, bool scales) {
    const auto begin = std::chrono::steady_clock::now();
    const RunOptions options{
        .request = request_, .name = algorithm_.data(), .tolerance = tolerance, .scales = scales};
    auto finished = graph_ ? run_here(op, options) : run_by_workers(op, *pages_, options);
    if (!finished) return finished.error();
    finished->stats.open_seconds = open_seconds_;
    finished->stats.run_seconds = seconds_since(begin);
    return finished;
  }

 private:
  template <class Op>
  Outcome<Finished> run_here(const Op& op, const RunOptions& options) {
    WorkerPool pool(threads_);
    auto finished = run_alone(op, *graph_, pool, options);
    if (!finished) return finished.error();
    const PagedFiles::Moved moved = graph_->moved();
    finished->stats.device_reads = moved.io_count;
    finished->stats.device_bytes = moved.bytes;
    return finished;
  }

  const std::string_view algorithm_;
  const RunRequest& request_;
  const unsigned threads_;
  std::unique_ptr<kv::KvGraph> graph_;  // without workers
  std::unique_ptr<Pages> pages_;        // with workers
  double open_seconds_ = 0;
};

AlgorithmResult result_of(const Finished& finished) {
  AlgorithmResult result;
  result.stats = finished.stats;
  result.summary = {{"rounds", finished.stats.iterations}};
  kv::KvCounts before;
  for (const RoundEnd& round : finished.rounds) {
    result.iterations.push_back(
        {{"seconds", round.seconds},
         {"left", round.left},
         {"gets", round.counts.gets - before.gets},
         {"cache_hits", round.counts.cache_hits - before.cache_hits},
         {"buffer_hits", round.counts.buffer.hits - before.buffer.hits},
         {"requests", round.counts.buffer.requests - before.buffer.requests}});
    before = round.counts;
  }
  return result;
}

void add_counts(const kv::KvCounts& counts, AlgorithmResult& result) {
  result.summary["gets"] = counts.gets;
  result.summary["cache_hits"] = counts.cache_hits;
  result.summary["buffer_hits"] = counts.buffer.hits;
  result.summary["requests"] = counts.buffer.requests;
}

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

Outcome<void> check_no_init(std::string_view algorithm, const RunRequest& request) {
  if (request.kv.init.empty()) return {};
  return make_error(
      EINVAL, "{}: takes no --init: arcs that are gone would leave its values too low", algorithm);
}

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

// The longest list: no eigenvalue is larger.
Outcome<size_t> longest_list(const std::string& path) {
  auto opened = kv::KvGraph::open(path, {}, false);
  if (!opened) return opened.error();
  kv::KvGraph& graph = **opened;
  size_t longest = 0;
  kv::KvReader reader(graph.store(Direction::kOut), {.depth = 16});
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

Outcome<AlgorithmResult> run_components(std::string_view algorithm, const RunRequest& request) {
  if (auto none = check_no_init(algorithm, request); !none) return none.error();
  GraphRun run(algorithm, request);
  if (auto opened = run.open(true); !opened) return opened.error();
  const auto finished = run.run(Components{}, 0, false);
  if (!finished) return finished.error();
  const size_t n = finished->values.size();
  std::vector<uint32_t> label(n), size(n);
  for (size_t v = 0; v < n; ++v) {
    label[v] = static_cast<uint32_t>(finished->values[v]);
    ++size[label[v]];
  }
  AlgorithmResult result = result_of(*finished);
  result.summary["components"] = static_cast<uint64_t>(
      std::count_if(size.begin(), size.end(), [](uint32_t s) { return s > 0; }));
  result.summary["largest"] = n == 0 ? 0 : *std::max_element(size.begin(), size.end());
  add_counts(finished->counts, result);
  if (request.wants_values) result.add_column("component", std::move(label));
  return result;
}

Outcome<AlgorithmResult> run_paths(std::string_view algorithm, const RunRequest& request) {
  if (auto none = check_no_init(algorithm, request); !none) return none.error();
  GraphRun run(algorithm, request);
  if (auto opened = run.open(false); !opened) return opened.error();
  const auto sources = sources_of(request.options, run.vertex_count(), request.graph);
  if (!sources) return sources.error();
  const auto finished =
      run.run(ShortestPaths{.source = sources->empty() ? 0 : sources->front()}, 0, false);
  if (!finished) return finished.error();
  uint64_t reached = 0;
  double farthest = 0;
  for (const double distance : finished->values) {
    if (distance == kNothingYet) continue;
    ++reached;
    farthest = std::max(farthest, distance);
  }
  AlgorithmResult result = result_of(*finished);
  result.unreached = "infinity";
  result.summary["reached"] = reached;
  result.summary["farthest"] = farthest;
  add_counts(finished->counts, result);
  if (request.wants_values) {
    result.add_column("distance",
                      std::vector<double>(finished->values.begin(), finished->values.end()));
  }
  return result;
}

struct ListedAlgorithm {
  AlgorithmInfo info;
  Outcome<AlgorithmResult> (*run)(std::string_view algorithm, const RunRequest& request);
};

constexpr ListedAlgorithm kAlgorithms[] = {
    {{"pagerank-delta", "PageRank to a --tolerance (1e-9), by sending what changed"}, run_ranks},
    {{"ppr", "personalised PageRank of each --source together, to a --tolerance (1e-9)"},
     run_ranks},
    {{"wcc", "weakly connected components"}, run_components},
    {{"sssp", "shortest paths from --source by the graph's weights"}, run_paths},
    {{"katz", "Katz centrality with --alpha, to a --tolerance (1e-9)"}, run_katz},
};

constexpr auto kMaiterInfos = [] {
  std::array<AlgorithmInfo, std::size(kAlgorithms)> infos;
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = kAlgorithms[i].info;
  return infos;
}();

Outcome<AlgorithmResult> run_algorithm(std::string_view algorithm, const RunRequest& request) {
  for (const ListedAlgorithm& listed : kAlgorithms) {
    if (listed.info.name != algorithm) continue;
    try {
      return listed.run(algorithm, request);
    } catch (const std::bad_alloc&) {
      return make_error(ENOMEM, "{}: no memory for the state of its vertices", request.graph);
    }
  }
  return make_error(EINVAL, "{}: the engine kv has no such algorithm", algorithm);
}

}  // namespace

Outcome<std::vector<double>> read_init(const std::string& path, uint64_t vertex_count) {
  auto reader = NpyReader::open(path);
  if (!reader) return reader.error();
  if (reader->descr() != "<f8" || reader->count() != vertex_count) {
    return make_error(
        EINVAL,
        "{}: {} numbers of type {}, and the graph has {} vertices: <f8 for each is expected", path,
        reader->count(), reader->descr(), vertex_count);
  }
  std::vector<double> values(vertex_count);
  if (auto read = reader->read(reinterpret_cast<char*>(values.data()), vertex_count); !read) {
    return read.error();
  }
  for (uint64_t v = 0; v < vertex_count; ++v) {
    if (!std::isfinite(values[v])) {
      return make_error(EINVAL, "{}: the value of vertex {} is no number", path, v);
    }
  }
  return values;
}

const AlgorithmEngine kEngine{
    .name = "kv", .format = GraphKind::kPages, .algorithms = kMaiterInfos, .run = run_algorithm};

}  // namespace graphlane::maiter
