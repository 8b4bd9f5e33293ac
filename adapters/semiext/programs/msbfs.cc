// Breadth-first search from up to 64 vertices at once, a bit for each (MS-BFS, Then et al.). A
// vertex's value is the number of sources that reach it. Without --source: 64 vertices at equal
// distances in the numbering.
#include <array>
#include <bit>

#include "adapters/semiext/program.h"

namespace graphlane::semiext {
namespace {

constexpr size_t kSourcesMax = 64;

class ManySearches {
 public:
  ManySearches(const Graph& graph, WorkerPool& pool, std::span<const VertexId> sources)
      : seen_(graph.vertex_count()),
        now_(graph.vertex_count()),
        coming_{std::vector<uint64_t>(graph.vertex_count()),
                std::vector<uint64_t>(graph.vertex_count())},
        counts_(pool) {
    for (size_t i = 0; i < sources.size(); ++i) coming_[0][sources[i]] |= uint64_t{1} << i;
  }

  void run(Engine<ManySearches>::Context& ctx, VertexId v) {
    uint64_t& came = coming_[ctx.iteration() % 2][v];
    const uint64_t fresh = came & ~seen_[v];
    came = 0;
    if (fresh == 0) return;
    store_shared(seen_[v], seen_[v] | fresh);
    now_[v] = fresh;
    Counts& counts = counts_[ctx.worker()];
    for (uint64_t bits = fresh; bits != 0; bits &= bits - 1) {
      const auto source = static_cast<size_t>(std::countr_zero(bits));
      ++counts.reached[source];
      counts.depth[source] = ctx.iteration();
    }
    ctx.request_vertex(v, v, EdgeSide::kOut);
  }

  void run_on_vertex(Engine<ManySearches>::Context& ctx, VertexId v, const ListView& list) {
    std::vector<uint64_t>& coming = coming_[(ctx.iteration() + 1) % 2];
    for (const VertexId u : list.neighbours) {
      const uint64_t fresh = now_[v] & ~load_shared(seen_[u]);
      if ((fresh & ~load_shared(coming[u])) == 0) continue;
      std::atomic_ref<uint64_t>(coming[u]).fetch_or(fresh, std::memory_order_relaxed);
      ctx.activate_vertex(u);
    }
  }

  AlgorithmResult result(std::span<const VertexId> sources, bool wants_values) {
    AlgorithmResult result;
    Json all = Json::array();
    for (size_t i = 0; i < sources.size(); ++i) {
      uint64_t reached = 0, depth = 0;
      counts_.fold([&](const Counts& counts) {
        reached += counts.reached[i];
        depth = std::max(depth, counts.depth[i]);
      });
      all.push_back({{"source", sources[i]}, {"reached", reached}, {"depth", depth}});
    }
    result.summary = {{"sources", sources.size()}, {"search", all}};
    if (!wants_values) return result;
    std::vector<uint32_t> counts(seen_.size());
    for (size_t v = 0; v < counts.size(); ++v) {
      counts[v] = static_cast<uint32_t>(std::popcount(seen_[v]));
    }
    result.add_column("sources", std::move(counts));
    result.add_column("bits", std::move(seen_));
    return result;
  }

 private:
  struct Counts {
    std::array<uint64_t, kSourcesMax> reached{};
    std::array<uint64_t, kSourcesMax> depth{};
  };
  std::vector<uint64_t> seen_;
  std::vector<uint64_t> now_;        // what reached the vertex in this iteration
  std::vector<uint64_t> coming_[2];  // what will, by turns
  PerWorker<Counts> counts_;
};

}  // namespace

Outcome<AlgorithmResult> run_msbfs(const ProgramRun& run) {
  const VertexId count = run.graph.vertex_count();
  auto sources = sources_of(run.options, count, run.graph.path());
  if (!sources) return sources.error();
  if (sources->size() > kSourcesMax) {
    return make_error(EINVAL, "--source: {} of them: {} at most", sources->size(), kSourcesMax);
  }
  if (run.options.sources.empty()) {
    sources->clear();
    const size_t wanted = std::min<size_t>(kSourcesMax, count);
    for (size_t i = 0; i < wanted; ++i) {
      sources->push_back(static_cast<VertexId>(uint64_t{count} * i / wanted));
    }
  }
  ManySearches searches(run.graph, run.pool, *sources);
  Engine<ManySearches> engine(run.graph, run.pool, searches);
  engine.activate_vertices(*sources);
  return run_program(run, "msbfs", engine,
                     [&] { return searches.result(*sources, run.wants_values); });
}

}  // namespace graphlane::semiext
