// Betweenness (Brandes), of the shortest paths from one source, or summed over several: forward,
// numbers of paths are sent along out-lists, level by level; backward, each vertex pulls what
// depends on it over the same lists. Each arc is a path of its own where there are duplicates. Ends
// of paths count nothing.
#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

constexpr int32_t kNoLevel = -1;

// The counts of one source.
struct PathCounts {
  std::vector<int32_t> level;
  std::vector<double> paths;
  std::vector<double> dependency;
  std::vector<VertexId> order;       // by level
  std::vector<size_t> level_begins;  // in it
};

class ForwardSweep {
 public:
  using Message = double;  // paths to the sender
  ForwardSweep(PathCounts& counts, VertexId source) : counts_(counts) {
    std::fill(counts.level.begin(), counts.level.end(), kNoLevel);
    std::fill(counts.paths.begin(), counts.paths.end(), 0.0);
    counts.level[source] = 0;
    counts.paths[source] = 1;
  }
  void run(Engine<ForwardSweep>::Context& ctx, VertexId v) {
    ctx.request_vertex(v, v, EdgeSide::kOut);
  }
  void run_on_vertex(Engine<ForwardSweep>::Context& ctx, VertexId v, const ListView& list) {
    ctx.multicast_msg(list.neighbours, counts_.paths[v]);
  }
  void run_on_message(Engine<ForwardSweep>::Context& ctx, VertexId v, double paths) {
    const auto next = static_cast<int32_t>(ctx.iteration()) + 1;
    if (counts_.level[v] == kNoLevel) {
      counts_.level[v] = next;
      ctx.activate_vertex(v);
    }
    if (counts_.level[v] == next) counts_.paths[v] += paths;
  }

 private:
  PathCounts& counts_;
};

class BackwardSweep {
 public:
  explicit BackwardSweep(PathCounts& counts)
      : counts_(counts), level_(counts.level_begins.size() - 1) {
    std::fill(counts.dependency.begin(), counts.dependency.end(), 0.0);
  }
  // The next level to pull: the last but one first, as nothing depends on the last. Before the run,
  // too.
  void activate_level(Engine<BackwardSweep>& engine) {
    if (level_ < 2) return;
    --level_;
    const size_t begin = counts_.level_begins[level_ - 1];
    engine.activate_vertices(
        std::span(counts_.order).subspan(begin, counts_.level_begins[level_] - begin));
  }
  void run(Engine<BackwardSweep>::Context& ctx, VertexId v) {
    ctx.request_vertex(v, v, EdgeSide::kOut);
  }
  void run_on_vertex(Engine<BackwardSweep>::Context&, VertexId v, const ListView& list) {
    double sum = 0;
    for (const VertexId u : list.neighbours) {
      if (counts_.level[u] == counts_.level[v] + 1) {
        sum += (1 + counts_.dependency[u]) / counts_.paths[u];
      }
    }
    counts_.dependency[v] = sum * counts_.paths[v];
  }
  void end_iteration(Engine<BackwardSweep>& engine) { activate_level(engine); }

 private:
  PathCounts& counts_;
  size_t level_;
};

void order_by_level(PathCounts& counts) {
  counts.order.clear();
  for (VertexId v = 0; v < counts.level.size(); ++v) {
    if (counts.level[v] != kNoLevel) counts.order.push_back(v);
  }
  std::stable_sort(counts.order.begin(), counts.order.end(),
                   [&](VertexId a, VertexId b) { return counts.level[a] < counts.level[b]; });
  counts.level_begins.assign(1, 0);
  for (size_t i = 1; i < counts.order.size(); ++i) {
    if (counts.level[counts.order[i]] != counts.level[counts.order[i - 1]]) {
      counts.level_begins.push_back(i);
    }
  }
  counts.level_begins.push_back(counts.order.size());
}

}  // namespace

Outcome<AlgorithmResult> run_betweenness(const ProgramRun& run) {
  const auto sources = sources_of(run.options, run.graph.vertex_count(), run.graph.path());
  if (!sources) return sources.error();
  const size_t n = run.graph.vertex_count();
  PathCounts counts{
      std::vector<int32_t>(n), std::vector<double>(n), std::vector<double>(n), {}, {}};
  std::vector<double> total(n);
  AlgorithmResult result;
  for (const VertexId source : *sources) {
    ForwardSweep forward(counts, source);
    Engine<ForwardSweep> there(run.graph, run.pool, forward);
    there.activate_vertices({&source, 1});
    if (Outcome<void> done = there.run(); !done) return done.error();
    order_by_level(counts);
    BackwardSweep backward(counts);
    Engine<BackwardSweep> back(run.graph, run.pool, backward);
    backward.activate_level(back);
    if (Outcome<void> done = back.run(); !done) return done.error();
    for (const VertexId v : counts.order) {
      if (v != source) total[v] += counts.dependency[v];
    }
    result.stats += there.stats();
    result.stats += back.stats();
  }
  result.summary = {{"sources", sources->size()}, {"top", top_ten(total)}};
  if (run.wants_values) result.add_column("betweenness", std::move(total));
  return result;
}

}  // namespace graphlane::semiext
