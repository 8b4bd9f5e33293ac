#include "adapters/kv/maiter/maiter.h"

#include <array>
#include <cmath>
#include <new>

#include "adapters/kv/maiter/algorithms.h"
#include "adapters/kv/maiter/run.h"
#include "graphfmt/output/npy.h"

namespace graphlane::maiter {
namespace {

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
  auto reader = graphfmt::NpyReader::open(path);
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

const AlgorithmEngine kEngine{.name = "kv",
                              .format = graphfmt::GraphKind::kPages,
                              .algorithms = kMaiterInfos,
                              .run = run_algorithm};

}  // namespace graphlane::maiter
