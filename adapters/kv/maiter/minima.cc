#include "adapters/kv/maiter/algorithms.h"
#include "adapters/kv/maiter/graph_run.h"

namespace graphlane::maiter {
namespace {

Outcome<void> check_no_init(std::string_view algorithm, const RunRequest& request) {
  if (request.kv.init.empty()) return {};
  return make_error(
      EINVAL, "{}: takes no --init: arcs that are gone would leave its values too low", algorithm);
}

}  // namespace

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

}  // namespace graphlane::maiter
