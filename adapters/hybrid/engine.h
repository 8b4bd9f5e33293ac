// The hybrid engine (HUS-Graph): values flow along the arcs of a graph of the format `dual`. Each block is pushed or
// pulled, as the devices make cheaper (planner.h).
//
// A program is a class with one function for an arc (algorithm 4), which any worker may call:
//
//   bool update(VertexId source, Value from, Value& to, double weight) const
//
// propagate(): immediate propagation (§3.6), for values that only fall (BFS, WCC, SSSP). There is one copy of the values. update() lowers `to` by lower_shared(); true: the target is active, again if it was before. So no order of
// blocks, and no choice of push or pull, changes a result. An active vertex passes its value on once in an iteration.
//
//   static constexpr bool kRunsNew      whether a vertex that becomes active before its interval has begun is passed on
//                                       in the same iteration
//   static bool can_change(Value)       optional: false for a value that no update() lowers any more; its lists need not
//                                       be pulled
//   static constexpr const char* kWeightsFromZero    optional: refuses other weights; what needs them
//
// accumulate(): all arcs once, from one copy of the values to another: update(source, from, to) adds to `to`. The caller
// swaps after the whole iteration. (The paper swaps after each row or column, which equals no reference.)
//
// gather(): of each vertex, all neighbours at once.
//
// Threads: one; update() by all workers of the pool.
#pragma once

#include <concepts>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "adapters/graph/graph.h"
#include "adapters/graph/progress.h"
#include "adapters/graph/shared_value.h"
#include "adapters/graph/vertex_array.h"
#include "adapters/hybrid/planner.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::hybrid {

// An iteration, for --explain.
struct IterationReport {
  uint64_t active = 0;
  PlanReport plan;
  uint64_t device_bytes = 0;
  uint64_t device_reads = 0;
  double seconds = 0;
};

struct EngineOptions {
  Model model = Model::kHybrid;
  DeviceModel device = {};
};

class Engine {
 public:
  Engine(DualGraph& graph, WorkerPool& pool, const EngineOptions& options)
      : graph_(graph), pool_(pool), planner_(graph, pool, options.device, options.model), sweep_(graph, pool),
        frontier_(graph.geometry()) {}

  DualGraph& graph() { return graph_; }
  WorkerPool& pool() { return pool_; }
  Frontier& frontier() { return frontier_; }
  const std::vector<IterationReport>& reports() const { return reports_; }
  const SweepStats& stats() const { return sweep_.stats(); }
  // Called at each iteration's end; outlives the runs.
  void set_progress(RunProgress* progress) { progress_ = progress; }

  // Until no vertex is active. The caller has activated some in frontier(). WCC flows both ways over a directed graph.
  template <class Program>
  Outcome<void> propagate(const Program& program, std::span<typename Program::Value> values, bool both_ways = false);

  // update(source, from[source], to[target], weight) for each arc: no two at once for a target, and always in one order.
  template <class Value, class Update>
  Outcome<void> accumulate(std::span<const Value> from, std::span<Value> to, const Update& update);

  // give(worker, v, neighbours) once for each vertex that has any, over in-arcs and out-arcs of a directed graph. Only the
  // caller ends an iteration.
  using Give = std::function<void(unsigned worker, VertexId v, std::span<const VertexId> neighbours)>;
  Outcome<void> gather(const Give& give);

 private:
  void begin_iteration();
  void end_iteration(uint64_t active);
  // Ends an iteration that went through all arcs; the next one goes the other way.
  Outcome<void> end_full_sweep();

  DualGraph& graph_;
  WorkerPool& pool_;
  Planner planner_;
  BlockSweep sweep_;
  Frontier frontier_;
  SweepPlan plan_;
  std::vector<IterationReport> reports_;
  RunProgress* progress_ = nullptr;
  PagedFiles::Moved moved_before_ = {};
  double begun_at_ = 0;
  bool ascends_ = true;
};

template <class Program>
Outcome<void> Engine::propagate(const Program& program, std::span<typename Program::Value> values, bool both_ways) {
  using Value = typename Program::Value;
  const DualGeometry& geometry = graph_.geometry();
  const Flow both[] = {kForward, kBackward};
  const std::span<const Flow> flows(both, both_ways && graph_.is_directed() ? 2 : 1);
  const BlockSweep::Body body = [&](unsigned, const SweepChunk& chunk, const ChunkLists& lists) -> Outcome<void> {
    const uint64_t own_first = geometry.first(chunk.index->own), other_first = geometry.first(chunk.index->other);
    const bool pushes = chunk.tag == kPushChunk;
    const uint32_t target_interval = pushes ? chunk.index->other : chunk.index->own;
    for (size_t i = 0; i < lists.vertices.size(); ++i) {
      const uint64_t own = own_first + lists.vertices[i];
      for (size_t arc = lists.starts[i]; arc < lists.starts[i + 1]; ++arc) {
        const uint64_t other = other_first + lists.neighbours[arc];
        const uint64_t source = pushes ? own : other, target = pushes ? other : own;
        if (!pushes && !frontier_.is_active(source)) continue;
        const double weight = lists.weight(arc);
        if constexpr (requires { Program::kWeightsFromZero; }) {
          if (!(weight >= 0)) {
            return make_error(EINVAL, "{}: the arc from {} to {} has the weight {}: {} needs weights from 0 on",
                              graph_.path(), source, target, weight, Program::kWeightsFromZero);
          }
        }
        const Value from = load_shared(values[source]);
        if (program.update(static_cast<VertexId>(source), from, values[target], weight)) {
          frontier_.activate(target, target_interval);
        }
      }
    }
    return {};
  };
  Planner::CanChange can_change;
  if constexpr (requires { Program::can_change(values[0]); }) {
    can_change = [&](uint64_t vertex) { return Program::can_change(values[vertex]); };
  }
  std::vector<uint32_t> order(geometry.partitions());
  std::iota(order.begin(), order.end(), 0u);
  while (frontier_.has_next()) {
    begin_iteration();
    uint64_t active = 0;
    const std::span<const uint32_t> all(order);
    // Rows together, or one after the other.
    const size_t step = Program::kRunsNew ? 1 : all.size();
    for (size_t row = 0; row < all.size(); row += step) {
      const std::span<const uint32_t> rows = all.subspan(row, step);
      for (const uint32_t interval : rows) active += frontier_.begin_interval(interval);
      plan_.clear();
      if (auto planned = planner_.add_active(rows, flows, frontier_, can_change, plan_); !planned) return planned;
      // Every second iteration begins with what the one before has left in the cache.
      if (!ascends_) std::reverse(plan_.chunks.begin(), plan_.chunks.end());
      if (auto swept = sweep_.run(plan_, body); !swept) return swept;
    }
    end_iteration(active);
    ascends_ = !ascends_;
    std::reverse(order.begin(), order.end());
    if (auto go_on = check_interrupt(); !go_on) return go_on;
  }
  return {};
}

template <class Value, class Update>
Outcome<void> Engine::accumulate(std::span<const Value> from, std::span<Value> to, const Update& update) {
  const DualGeometry& geometry = graph_.geometry();
  const BlockSweep::Body body = [&](unsigned, const SweepChunk& chunk, const ChunkLists& lists) -> Outcome<void> {
    const uint64_t own_first = geometry.first(chunk.index->own), other_first = geometry.first(chunk.index->other);
    const bool pushes = chunk.tag == kPushChunk;
    for (size_t i = 0; i < lists.vertices.size(); ++i) {
      const uint64_t own = own_first + lists.vertices[i];
      if (pushes) {
        for (size_t arc = lists.starts[i]; arc < lists.starts[i + 1]; ++arc) {
          update(from[own], to[other_first + lists.neighbours[arc]], lists.weight(arc));
        }
      } else {
        Value sum = to[own];
        const Value* const sources = from.data() + other_first;
        for (size_t arc = lists.starts[i]; arc < lists.starts[i + 1]; ++arc) {
          update(sources[lists.neighbours[arc]], sum, lists.weight(arc));
        }
        to[own] = sum;
      }
    }
    return {};
  };
  begin_iteration();
  plan_.clear();
  const uint32_t partitions = geometry.partitions();
  for (uint32_t i = 0; i < partitions; ++i) {
    const uint32_t targets = ascends_ ? i : partitions - 1 - i;
    if (auto planned = planner_.add_all_into(targets, kForward, ascends_, plan_); !planned) return planned;
    // The plan keeps the indexes of its blocks in memory.
    if (!graph_.keeps_indexes() || i + 1 == partitions) {
      if (auto swept = sweep_.run(plan_, body); !swept) return swept;
      plan_.clear();
    }
  }
  return end_full_sweep();
}

}  // namespace graphlane::hybrid
