// Breadth-first search from one vertex: levels and parents.
//
// A value is a level and a parent, level first; the smallest wins. So the parent is the lowest vertex of the level
// before, in any order of arcs. When a level falls again, its vertex passes it on again.
#include <limits>

#include "adapters/hybrid/program.h"

namespace graphlane::hybrid {
namespace {

struct Bfs {
  using Value = uint64_t;
  static constexpr bool kRunsNew = false;  // then no level is ever too high, and none is passed on twice
  static constexpr Value kUnreached = std::numeric_limits<Value>::max();

  static constexpr Value value(uint64_t level, VertexId parent) { return level << 32 | parent; }
  static constexpr uint64_t level(Value value) { return value >> 32; }

  // Levels are final: kRunsNew is false.
  static bool can_change(Value value) { return value == kUnreached; }

  bool update(VertexId source, Value from, Value& to, double) const {
    const Value reached = value(level(from) + 1, source);
    return level(exchange_lower_shared(to, reached)) > level(reached);
  }
};

AlgorithmResult bfs_result(std::span<const uint64_t> values, bool wants_values) {
  uint64_t reached = 0, depth = 0;
  for (const uint64_t value : values) {
    if (value == Bfs::kUnreached) continue;
    ++reached;
    depth = std::max(depth, Bfs::level(value));
  }
  AlgorithmResult result{.unreached = "9223372036854775807"};
  result.summary = {{"reached", reached}, {"depth", depth}};
  if (!wants_values) return result;
  std::vector<int32_t> levels(values.size(), -1);
  std::vector<int64_t> parents(values.size(), -1);
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v] == Bfs::kUnreached) continue;
    levels[v] = static_cast<int32_t>(Bfs::level(values[v]));
    parents[v] = static_cast<int64_t>(values[v] & 0xffffffff);
  }
  result.columns = {{"level", std::move(levels)}, {"parent", std::move(parents)}};
  return result;
}

}  // namespace

Outcome<AlgorithmResult> run_bfs(const ProgramRun& run) {
  const auto sources = sources_of(run.options, run.vertex_count(), run.graph().path());
  if (!sources) return sources.error();
  VertexArray<uint64_t> values(run.vertex_count(), Bfs::kUnreached);
  if (!sources->empty()) {
    const VertexId source = sources->front();
    values[source] = Bfs::value(0, source);
    run.engine.frontier().activate(source);
  }
  if (auto done = run.engine.propagate(Bfs{}, std::span(values)); !done) return done.error();
  return bfs_result(values, run.wants_values);
}

}  // namespace graphlane::hybrid
