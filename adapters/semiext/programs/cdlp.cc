// Community detection by label propagation, as LDBC Graphalytics defines it: in each synchronous
// iteration a vertex takes the label that most of its neighbours have, the smallest of those. Each
// arc counts, so that a neighbour in both directions of a directed graph counts twice. 10
// iterations, unless given.
#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

constexpr uint64_t kLabelIterations = 10;

class LabelPropagation {
 public:
  LabelPropagation(const Graph& graph, WorkerPool& pool, uint64_t iterations)
      : iterations_(iterations),
        label_(graph.vertex_count()),
        next_(graph.vertex_count()),
        seen_(pool) {
    for (VertexId v = 0; v < label_.size(); ++v) label_[v] = v;
  }

  Next begin_iteration(Engine<LabelPropagation>& engine) {
    return engine.iteration() < iterations_ && engine.vertex_count() > 0 ? Next::kAll : Next::kStop;
  }

  void run(Engine<LabelPropagation>::Context& ctx, VertexId v) {
    ctx.request_vertex(v, v, EdgeSide::kBoth);
  }

  void run_on_vertex(Engine<LabelPropagation>::Context& ctx, VertexId v, const ListView& list) {
    std::vector<VertexId>& seen = seen_[ctx.worker()];
    seen.clear();
    for (const VertexId u : list.neighbours) seen.push_back(label_[u]);
    for (const VertexId u : list.in_neighbours) seen.push_back(label_[u]);
    std::sort(seen.begin(), seen.end());
    VertexId best = label_[v];
    size_t best_count = 0;
    for (size_t i = 0, end = 0; i < seen.size(); i = end) {
      while (end < seen.size() && seen[end] == seen[i]) ++end;
      if (end - i > best_count) {
        best_count = end - i;
        best = seen[i];
      }
    }
    next_[v] = best;
  }

  void end_iteration(Engine<LabelPropagation>&) { label_.swap(next_); }

  const VertexArray<VertexId>& labels() const { return label_; }

 private:
  const uint64_t iterations_;
  VertexArray<VertexId> label_;
  VertexArray<VertexId> next_;
  PerWorker<std::vector<VertexId>> seen_;
};

}  // namespace

Outcome<AlgorithmResult> run_cdlp(const ProgramRun& run) {
  LabelPropagation program(run.graph, run.pool, run.options.iterations.value_or(kLabelIterations));
  Engine<LabelPropagation> engine(run.graph, run.pool, program);
  return run_program(run, "cdlp", engine, [&] {
    std::vector<uint32_t> size(program.labels().size());
    for (const VertexId label : program.labels()) ++size[label];
    AlgorithmResult result;
    result.summary = {{"communities",
                       size.size() - static_cast<size_t>(std::count(size.begin(), size.end(), 0u))},
                      {"largest", size.empty() ? 0 : *std::max_element(size.begin(), size.end())}};
    if (run.wants_values) {
      result.add_column("label",
                        std::vector<VertexId>(program.labels().begin(), program.labels().end()));
    }
    return result;
  });
}

}  // namespace graphlane::semiext
