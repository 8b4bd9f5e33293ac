// Breadth-first search from one vertex: levels and parents.
//
// A value is a level and a parent, level first; the smallest wins. So the parent is the lowest
// vertex of the level before, in any order of arcs. When a level falls again, its vertex passes it
// on again.
#include <limits>

#include "adapters/hybrid/program.h"

namespace graphlane::hybrid {
namespace {

struct Bfs {
  using Value = uint64_t;
  // then no level is ever too high, and none is passed on twice
  static constexpr bool kRunsNew = false;
  static constexpr bool kFirstIsBest = true;
  static constexpr Value kUnreached = std::numeric_limits<Value>::max();

  static constexpr Value value(uint64_t level, VertexId parent) { return level << 32 | parent; }
  static constexpr uint64_t level(Value value) { return value >> 32; }

  // Levels are final, as kRunsNew is false; but blocks of the same iteration may find a lower
  // parent.
  static bool can_change(Value value, uint64_t iteration) { return level(value) > iteration; }

  bool update(VertexId source, Value from, Value& to, double) const {
    const Value reached = value(level(from) + 1, source);
    return level(exchange_lower_shared(to, reached)) > level(reached);
  }
};

Outcome<AlgorithmResult> bfs_result(VertexValues<uint64_t>& values, bool wants_values) {
  uint64_t reached = 0, depth = 0;
  std::vector<int32_t> levels(wants_values ? values.geometry().vertex_count() : 0, -1);
  std::vector<int64_t> parents(levels.size(), -1);
  const auto look = [&](uint64_t first, std::span<const uint64_t> some) {
    for (size_t v = 0; v < some.size(); ++v) {
      if (some[v] == Bfs::kUnreached) continue;
      ++reached;
      depth = std::max(depth, Bfs::level(some[v]));
      if (!wants_values) continue;
      levels[first + v] = static_cast<int32_t>(Bfs::level(some[v]));
      parents[first + v] = static_cast<int64_t>(some[v] & 0xffffffff);
    }
  };
  if (auto looked = for_each_interval(look, reading(values)); !looked) return looked.error();
  AlgorithmResult result{.unreached = "9223372036854775807"};
  result.summary = {{"reached", reached}, {"depth", depth}};
  if (wants_values) {
    result.add_column("level", std::move(levels));
    result.add_column("parent", std::move(parents));
  }
  return result;
}

}  // namespace

Outcome<AlgorithmResult> run_bfs(const ProgramRun& run) {
  const auto sources = sources_of(run.options, run.vertex_count(), run.graph().path());
  if (!sources) return sources.error();
  auto values = make_values_of<uint64_t>(run, Bfs::kUnreached);
  if (!values) return values.error();
  if (!sources->empty()) {
    const VertexId source = sources->front();
    if (auto set = values->set(source, Bfs::value(0, source)); !set) return set.error();
    run.engine.frontier().activate(source);
  }
  if (auto done = run.engine.propagate(Bfs{}, *values); !done) return done.error();
  return bfs_result(*values, run.wants_values);
}

}  // namespace graphlane::hybrid
