#include "adapters/semiext/semiext.h"

#include <array>
#include <chrono>
#include <iterator>
#include <new>

#include "adapters/graph/device_model.h"
#include "adapters/semiext/program.h"
#include "graphfmt/sort/line.h"

namespace graphlane::semiext {
namespace {

struct ListedProgram {
  AlgorithmInfo info;
  ProgramFunction run;
  bool wants_weights = false;
};

constexpr ListedProgram kPrograms[] = {
    {{"bfs", "breadth-first search from --source: levels and parents"}, run_bfs},
    {{"pagerank", "PageRank, --iterations of it (30) or to a --tolerance"}, run_pagerank},
    {{"wcc", "weakly connected components"}, run_wcc},
    {{"sssp", "shortest paths from --source by the graph's weights"},
     run_sssp,
     /*wants_weights=*/true},
    {{"triangles", "triangles, of all and of each vertex"}, run_triangles},
    {{"lcc", "local clustering coefficients"}, run_lcc},
    {{"cdlp", "communities by label propagation, --iterations of it (10)"}, run_cdlp},
    {{"kcore", "core numbers"}, run_kcore},
    {{"betweenness", "betweenness, of shortest paths from each --source"}, run_betweenness},
    {{"scan", "scan statistics: edges among a vertex and its neighbours"}, run_scan},
    {{"msbfs", "breadth-first searches from up to 64 sources at once"}, run_msbfs},
    {{"pagerank-delta", "PageRank to a --tolerance (1e-9), by sending what changed"},
     run_pagerank_delta},
};

constexpr auto kInfos = [] {
  std::array<AlgorithmInfo, std::size(kPrograms)> infos;
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = kPrograms[i].info;
  return infos;
}();

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Gaps that disks would take longer to skip are read. Variants of FlashGraph's figures read none.
Outcome<void> set_gaps(const Graph& graph, std::optional<uint64_t> gap_bytes) {
  if (graph.is_in_memory() || graph.variant().merge != Merge::kLists) return {};
  if (!gap_bytes) {
    const auto device =
        measure_devices(*graph.side(EdgeSide::kOut).lists, graph.pages(), Measure::kGap);
    if (!device) return device.error();
    gap_bytes = device->gap_bytes;
  }
  graph.pages().read_through_gaps(*gap_bytes);
  return {};
}

Outcome<AlgorithmResult> run_listed(const ListedProgram& program, const RunRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  const auto graph = Graph::open(request.graph, {.cache_bytes = request.cache_bytes,
                                                 .in_memory = request.in_memory,
                                                 .weights = program.wants_weights,
                                                 .variant = request.variant});
  if (!graph) return graph.error();
  const double open_seconds = seconds_since(begin);
  const PagedFiles::Moved before = (*graph)->moved();
  const auto run_begin = std::chrono::steady_clock::now();
  try {
    WorkerPool pool(graphfmt::usable_threads(request.threads));
    if (auto set = set_gaps(**graph, request.gap_bytes); !set) return set.error();
    Outcome<AlgorithmResult> result = program.run({.graph = **graph,
                                                   .pool = pool,
                                                   .options = request.options,
                                                   .wants_values = request.wants_values});
    if (!result) return result.error();
    const PagedFiles::Moved after = (*graph)->moved();
    result->stats.device_reads = after.io_count - before.io_count;
    result->stats.device_bytes = after.bytes - before.bytes;
    result->stats.open_seconds = open_seconds;
    result->stats.run_seconds = seconds_since(run_begin);
    return result;
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, "{}: no memory for the state of its {} vertices", request.graph,
                      (*graph)->vertex_count());
  }
}

Outcome<AlgorithmResult> run_named(std::string_view algorithm, const RunRequest& request) {
  for (const ListedProgram& program : kPrograms) {
    if (program.info.name == algorithm) return run_listed(program, request);
  }
  return make_error(EINVAL, "{}: the engine semiext has no such algorithm", algorithm);
}

}  // namespace

const AlgorithmEngine kEngine{.name = "semiext",
                              .format = graphfmt::GraphKind::kLists,
                              .algorithms = kInfos,
                              .run = run_named};

}  // namespace graphlane::semiext
