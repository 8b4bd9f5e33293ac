#include "adapters/hybrid/hybrid.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <new>

#include "adapters/hybrid/program.h"
#include "graphfmt/sort/line.h"

namespace graphlane::hybrid {
namespace {

struct HybridProgram {
  AlgorithmInfo info;
  ProgramFunction run;
  bool wants_weights = false;
};

constexpr HybridProgram kHybridPrograms[] = {
    {{"bfs", "breadth-first search from --source: levels and parents"}, run_bfs},
    {{"pagerank", "PageRank, --iterations of it (30) or to a --tolerance"}, run_pagerank},
    {{"wcc", "weakly connected components"}, run_wcc},
    {{"sssp", "shortest paths from --source by the graph's weights"},
     run_sssp,
     /*wants_weights=*/true},
    {{"cdlp", "communities by label propagation, --iterations of it (10)"}, run_cdlp},
};

constexpr auto kHybridInfos = [] {
  std::array<AlgorithmInfo, std::size(kHybridPrograms)> infos;
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = kHybridPrograms[i].info;
  return infos;
}();

double seconds_from(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Outcome<Model> model_named(const std::string& name) {
  if (name.empty() || name == "hybrid") return Model::kHybrid;
  if (name == "push") return Model::kPush;
  if (name == "pull") return Model::kPull;
  if (name == "random") return Model::kRandom;
  return make_error(EINVAL, "'{}': not a model (choose hybrid, push, pull or random)", name);
}

// For --explain.
Json iterations_json(const std::vector<IterationReport>& reports, bool has_value_file) {
  Json all = Json::array();
  for (const IterationReport& report : reports) {
    Json one = {{"active", report.active},
                {"pushed", report.plan.pushed},
                {"pulled", report.plan.pulled},
                {"predicted_bytes", report.plan.cost.bytes},
                {"device_bytes", report.device_bytes}};
    if (has_value_file) one["value_bytes"] = report.value_bytes;
    one["predicted_seconds"] = report.plan.seconds;
    one["seconds"] = report.seconds;
    all.push_back(std::move(one));
  }
  return all;
}

constexpr double kArcsPerSecond = 60e6;  // of a thread

// Beside the graph, where there is room for it, too.
std::string directory_of_values(const std::string& graph) {
  return std::filesystem::weakly_canonical(graph).parent_path().string();
}

Outcome<AlgorithmResult> run_program(const HybridProgram& program, const RunRequest& request) {
  const Outcome<Model> model = model_named(request.model);
  if (!model) return model.error();
  const auto begin = std::chrono::steady_clock::now();
  const auto graph = DualGraph::open(request.graph, {.memory_bytes = request.cache_bytes,
                                                     .in_memory = request.in_memory,
                                                     .weights = program.wants_weights});
  if (!graph) return graph.error();
  const double open_seconds = seconds_from(begin);
  const auto run_begin = std::chrono::steady_clock::now();
  try {
    WorkerPool pool(graphfmt::usable_threads(request.threads));
    auto device = measure_devices((*graph)->blocks(graphfmt::DualSide::kOut), (*graph)->pages(),
                                  Measure::kAll);
    if (!device) return device.error();
    device->arcs_per_second = kArcsPerSecond * pool.size();
    device->gap_bytes = request.gap_bytes.value_or(device->gap_bytes);
    (*graph)->pages().read_through_gaps(device->gap_bytes);
    Engine engine(**graph, pool,
                  {.model = *model,
                   .accumulates = request.accumulates,
                   .device = *device,
                   .value_directory = directory_of_values(request.graph),
                   .value_memory_bytes = request.value_memory_bytes});
    RunProgress progress(std::string(program.info.name), request.options.iterations.value_or(0));
    engine.set_progress(&progress);
    Outcome<AlgorithmResult> result = program.run(
        {.engine = engine, .options = request.options, .wants_values = request.wants_values});
    if (!result) return result.error();
    const PagedFiles::Moved moved = (*graph)->moved();
    const ValueSpace& space = engine.value_space();
    result->iterations = iterations_json(engine.reports(), !space.is_in_memory());
    result->stats.value_bytes_read = space.read_bytes;
    result->stats.value_bytes_written = space.written_bytes;
    result->stats.iterations = engine.reports().size();
    for (const IterationReport& report : engine.reports()) {
      result->stats.vertices_run += report.active;
    }
    result->stats.lists_given = engine.stats().lists;
    result->stats.ranges_read = engine.stats().chunks;
    result->stats.device_reads = moved.io_count;
    result->stats.device_bytes = moved.bytes;
    result->stats.open_seconds = open_seconds;
    result->stats.run_seconds = seconds_from(run_begin);
    return result;
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, "{}: no memory for the state of its {} vertices", request.graph,
                      (*graph)->vertex_count());
  }
}

Outcome<AlgorithmResult> run_named_program(std::string_view algorithm, const RunRequest& request) {
  for (const HybridProgram& program : kHybridPrograms) {
    if (program.info.name == algorithm) return run_program(program, request);
  }
  return make_error(EINVAL, "{}: the engine hybrid has no such algorithm", algorithm);
}

}  // namespace

const AlgorithmEngine kEngine{.name = "hybrid",
                              .format = graphfmt::GraphKind::kDual,
                              .algorithms = kHybridInfos,
                              .run = run_named_program};

}  // namespace graphlane::hybrid
