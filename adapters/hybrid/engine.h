// The hybrid engine (HUS-Graph): values flow along the arcs of a graph of the format `dual`. Each
// block is pushed or pulled, as the devices make cheaper (planner.h).
//
// A program is a class with one function for an arc (algorithm 4), which any worker may call:
//
//   bool update(VertexId source, Value from, Value& to, double weight) const
//
// propagate(): immediate propagation (§3.6), for values that only fall (BFS, WCC, SSSP). There is
// one copy of the values. update() lowers `to` by lower_shared(); true: the target is active, again
// if it was before. So no order of blocks, and no choice of push or pull, changes a result. An
// active vertex passes its value on once in an iteration.
//
//   static constexpr bool kRunsNew      whether a vertex that becomes active before its interval has begun is passed on
//                                       in the same iteration
//   static bool can_change(Value, iteration)   optional: false for a value that no update() of this iteration, which counts
//                                       from 0, or of a later one lowers; its lists need not be pulled
//   static constexpr bool kFirstIsBest               optional: of a vertex's active neighbours the lowest gives the best value,
//                                                     so a pull ends there
//   static constexpr const char* kWeightsFromZero    optional: refuses other weights; what needs them
//
// accumulate(): all arcs once, from one copy of the values to another: update(source, from, to)
// adds to `to`. The caller swaps after the whole iteration. (The paper swaps after each row or
// column, which equals no reference.)
//
// for_each_arc(): all arcs once, for programs that keep their own state.
//
// gather(): of each vertex, the values of all neighbours at once.
//
// Values beyond their budget are in a file (vertex_values.h): then blocks come one by one, with the
// values of their two intervals. The results are the same.
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
#include "adapters/hybrid/planner.h"
#include "adapters/hybrid/strips.h"
#include "adapters/hybrid/vertex_values.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::hybrid {

// An iteration, for --explain.
struct IterationReport {
  uint64_t active = 0;
  PlanReport plan;
  uint64_t device_bytes = 0;
  uint64_t device_reads = 0;
  uint64_t value_bytes = 0;  // of vertices' values, read and written
  double seconds = 0;
};

struct EngineOptions {
  Model model = Model::kHybrid;
  // propagate() reads the values of the iteration before, as §3.6 compares it; the results are the
  // same.
  bool accumulates = false;
  DeviceModel device = {};
  std::string value_directory = {};
  std::optional<uint64_t> value_memory_bytes = {};
};

class Engine {
 public:
  Engine(DualGraph& graph, WorkerPool& pool, const EngineOptions& options)
      : graph_(graph),
        pool_(pool),
        planner_(graph, pool, options.device, options.model),
        sweep_(graph, pool),
        frontier_(graph.geometry()),
        value_space_(graph.geometry(), options.value_directory, options.value_memory_bytes,
                     options.accumulates ? 2 : 1),
        accumulates_(options.accumulates) {}

  DualGraph& graph() { return graph_; }
  WorkerPool& pool() { return pool_; }
  Frontier& frontier() { return frontier_; }
  ValueSpace& value_space() { return value_space_; }
  Model model() const { return planner_.model(); }
  bool accumulates() const { return accumulates_; }
  const std::vector<IterationReport>& reports() const { return reports_; }
  const SweepStats& stats() const { return sweep_.stats(); }
  // Called at each iteration's end; outlives the runs.
  void set_progress(RunProgress* progress) { progress_ = progress; }

  // Until no vertex is active. The caller has activated some in frontier(). WCC flows both ways
  // over a directed graph.
  template <class Program>
  Outcome<void> propagate(const Program& program, VertexValues<typename Program::Value>& values,
                          bool both_ways = false);

  // update(from of the source, to of the target, weight) for each arc: no two at once for a target,
  // and always in one order.
  template <class Value, class Update>
  Outcome<void> accumulate(VertexValues<Value>& from, VertexValues<Value>& to,
                           const Update& update);

  // visit(source, target) once for each arc, by all workers, in any order. An edge of an undirected
  // graph is visited from both ends.
  template <class Visit>
  Outcome<void> for_each_arc(const Visit& visit);

  // give(worker, begun, vertex, values of its neighbours) once for each vertex that has any, over
  // in-arcs and out-arcs of a directed graph. Vertices count from the interval's begin. Before the
  // first one of an interval, begin(interval), and what that returns, `begun`, lives until the last
  // one.
  template <class Value, class Begin, class Give>
  Outcome<void> gather(VertexValues<Value>& values, const Begin& begin, const Give& give);

 private:
  // An arc of a pull that ends at the first active neighbour, of one that is pushed: mostly decoding.
  static constexpr double kFirstShare = 0.25;
  static constexpr uint64_t kWaitingValuesMax = 4 << 20;  // of neighbours, in gather()

  template <class Value>
  Outcome<void> accumulate_into(uint32_t targets, std::span<const uint32_t> sources,
                                VertexValues<Value>& from, VertexValues<Value>& to,
                                const BlockSweep::Body& body);
  // All intervals, as this sweep goes through them.
  std::vector<uint32_t> intervals_in_order() const;
  // Gives all arcs to `body` once; in order: as accumulate() promises.
  Outcome<void> sweep_all(const BlockSweep::Body& body, bool in_order);
  void begin_iteration();
  void end_iteration(uint64_t active);
  // Ends an iteration that went through all arcs; the next one goes the other way.
  Outcome<void> end_full_sweep();

  DualGraph& graph_;
  WorkerPool& pool_;
  Planner planner_;
  BlockSweep sweep_;
  Frontier frontier_;
  ValueSpace value_space_;
  SweepPlan plan_;
  std::vector<IterationReport> reports_;
  RunProgress* progress_ = nullptr;
  const bool accumulates_;
  PagedFiles::Moved moved_before_ = {};
  uint64_t value_bytes_before_ = 0;
  double begun_at_ = 0;
  bool ascends_ = true;
};

template <class Program>
Outcome<void> Engine::propagate(const Program& program,
                                VertexValues<typename Program::Value>& values, bool both_ways) {
  using Value = typename Program::Value;
  const graphfmt::DualGeometry& geometry = graph_.geometry();
  const Flow both[] = {kForward, kBackward};
  const std::span<const Flow> flows(both, both_ways && graph_.is_directed() ? 2 : 1);
  std::optional<VertexValues<Value>> before;
  const auto copy = [](uint64_t, std::span<const Value> now, std::span<Value> to) {
    std::copy(now.begin(), now.end(), to.begin());
  };
  if (accumulates_) {
    auto made = VertexValues<Value>::create(value_space_);
    if (!made) return made.error();
    before = std::move(*made);
    if (auto copied = for_each_interval(copy, reading(values), replacing(*before)); !copied) {
      return copied;
    }
  }
  VertexValues<Value>& sources_of = before ? *before : values;
  const BlockSweep::Body body = [&](unsigned, const SweepChunk& chunk,
                                    const ChunkLists& lists) -> Outcome<void> {
    const uint64_t own_first = geometry.first(chunk.index->own),
                   other_first = geometry.first(chunk.index->other);
    const bool pushes = chunk.tag == kPushChunk;
    const uint32_t target_interval = pushes ? chunk.index->other : chunk.index->own;
    const uint64_t source_first = pushes ? own_first : other_first,
                   target_first = pushes ? other_first : own_first;
    const Value* const sources = sources_of.held(pushes ? chunk.index->own : chunk.index->other);
    Value* const targets = values.held(target_interval);
    for (size_t i = 0; i < lists.vertices.size(); ++i) {
      for (size_t arc = lists.starts[i]; arc < lists.starts[i + 1]; ++arc) {
        const uint32_t source = pushes ? lists.vertices[i] : lists.neighbours[arc];
        const uint32_t target = pushes ? lists.neighbours[arc] : lists.vertices[i];
        if (!pushes && !frontier_.is_active(source_first + source)) continue;
        const double weight = lists.weight(arc);
        if constexpr (requires { Program::kWeightsFromZero; }) {
          if (!(weight >= 0)) {
            return make_error(
                EINVAL, "{}: the arc from {} to {} has the weight {}: {} needs weights from 0 on",
                graph_.path(), source_first + source, target_first + target, weight,
                Program::kWeightsFromZero);
          }
        }
        const Value from = load_shared(sources[source]);
        if (program.update(static_cast<VertexId>(source_first + source), from, targets[target],
                           weight)) {
          frontier_.activate(target_first + target, target_interval);
        }
        if constexpr (requires { Program::kFirstIsBest; }) {
          if (!pushes) break;
        }
      }
    }
    return {};
  };
  planner_.set_pull_share(requires { Program::kFirstIsBest; } ? kFirstShare : 1);
  Planner::CanChange can_change;
  uint64_t iteration = 0;
  if constexpr (requires(Value value) { Program::can_change(value, iteration); }) {
    can_change = [&](uint32_t interval, std::span<uint64_t> bits) {
      const Value* const held = values.held(interval);
      for (uint64_t vertex = 0; vertex < geometry.size(interval); ++vertex) {
        bits[vertex / 64] |= uint64_t{Program::can_change(held[vertex], iteration)} << vertex % 64;
      }
    };
  }
  const auto sweep = [&](std::span<const uint32_t> sources,
                         std::span<const uint32_t> targets) -> Outcome<void> {
    plan_.clear();
    if (auto planned = planner_.add_active(sources, targets, flows, frontier_, can_change, plan_);
        !planned) {
      return planned;
    }
    // An iteration begins with what the one before has left in the cache.
    if (!ascends_) plan_.reverse(0, graph_.segment_bytes());
    return sweep_.run(plan_, body);
  };
  std::vector<uint32_t> all(geometry.partitions());
  std::iota(all.begin(), all.end(), 0u);
  std::vector<uint32_t> columns = all;
  while (frontier_.has_next()) {
    begin_iteration();
    uint64_t active = 0;
    // Rows together, or one after the other.
    const size_t step = Program::kRunsNew && !accumulates_ ? 1 : all.size();
    for (size_t done = 0; done < all.size(); done += step) {
      const auto rows =
          std::span<const uint32_t>(all).subspan(ascends_ ? done : all.size() - step - done, step);
      for (const uint32_t interval : rows) active += frontier_.begin_interval(interval);
      if (values.is_in_memory()) {
        if (auto swept = sweep(rows, all); !swept) return swept;
        continue;
      }
      // A block at a time, and the values of its two intervals. Every second row goes back through
      // what is in memory.
      for (size_t i = 0; i < rows.size(); ++i) {
        const uint32_t source = rows[ascends_ ? i : rows.size() - 1 - i];
        if (frontier_.count(source) == 0) continue;
        const auto from = sources_of.read(source);
        if (!from) return from.error();
        for (const uint32_t target : columns) {
          if (!planner_.has_arcs(source, target, flows)) continue;
          const auto to = values.change(target);
          if (!to) return to.error();
          if (auto swept = sweep({&source, 1}, {&target, 1}); !swept) return swept;
        }
        std::reverse(columns.begin(), columns.end());
      }
    }
    if (before) {
      if (auto copied = for_each_interval(copy, reading(values), replacing(*before)); !copied) {
        return copied;
      }
    }
    end_iteration(active);
    ++iteration;
    // Back only to what is worth it: disks are slower backwards.
    if (reports_.back().device_bytes >= graph_.cache_bytes() / 2) ascends_ = !ascends_;
    if (auto go_on = check_interrupt(); !go_on) return go_on;
  }
  return {};
}

template <class Value, class Update>
Outcome<void> Engine::accumulate(VertexValues<Value>& from, VertexValues<Value>& to,
                                 const Update& update) {
  const BlockSweep::Body body = [&](unsigned, const SweepChunk& chunk,
                                    const ChunkLists& lists) -> Outcome<void> {
    const bool pushes = chunk.tag == kPushChunk;
    const Value* const sources = from.held(pushes ? chunk.index->own : chunk.index->other);
    Value* const targets = to.held(pushes ? chunk.index->other : chunk.index->own);
    for (size_t i = 0; i < lists.vertices.size(); ++i) {
      const uint32_t own = lists.vertices[i];
      if (pushes) {
        for (size_t arc = lists.starts[i]; arc < lists.starts[i + 1]; ++arc) {
          update(sources[own], targets[lists.neighbours[arc]], lists.weight(arc));
        }
      } else {
        Value sum = targets[own];
        for (size_t arc = lists.starts[i]; arc < lists.starts[i + 1]; ++arc) {
          update(sources[lists.neighbours[arc]], sum, lists.weight(arc));
        }
        targets[own] = sum;
      }
    }
    return {};
  };
  begin_iteration();
  if (to.is_in_memory()) {
    if (auto swept = sweep_all(body, true); !swept) return swept;
  } else {
    const std::vector<uint32_t> order = intervals_in_order();
    for (const uint32_t targets : order) {
      if (auto swept = accumulate_into(targets, order, from, to, body); !swept) return swept;
    }
  }
  return end_full_sweep();
}

// A block at a time, and the values of its two intervals.
template <class Value>
Outcome<void> Engine::accumulate_into(uint32_t targets, std::span<const uint32_t> sources,
                                      VertexValues<Value>& from, VertexValues<Value>& to,
                                      const BlockSweep::Body& body) {
  const auto sums = to.change(targets);
  if (!sums) return sums.error();
  for (const uint32_t source : sources) {
    plan_.clear();
    if (auto planned = planner_.add_all_into(targets, {&source, 1}, kForward, ascends_, plan_);
        !planned) {
      return planned;
    }
    if (plan_.chunks.empty()) continue;
    const auto values = from.read(source);
    if (!values) return values.error();
    if (auto swept = sweep_.run(plan_, body); !swept) return swept;
  }
  return {};
}

template <class Visit>
Outcome<void> Engine::for_each_arc(const Visit& visit) {
  const graphfmt::DualGeometry& geometry = graph_.geometry();
  const BlockSweep::Body body = [&](unsigned, const SweepChunk& chunk,
                                    const ChunkLists& lists) -> Outcome<void> {
    const uint64_t own_first = geometry.first(chunk.index->own),
                   other_first = geometry.first(chunk.index->other);
    for (size_t i = 0; i < lists.vertices.size(); ++i) {
      const auto own = static_cast<VertexId>(own_first + lists.vertices[i]);
      for (const uint32_t neighbour : lists.list(i)) {
        const auto other = static_cast<VertexId>(other_first + neighbour);
        chunk.tag == kPushChunk ? visit(own, other) : visit(other, own);
      }
    }
    return {};
  };
  begin_iteration();
  if (auto swept = sweep_all(body, false); !swept) return swept;
  return end_full_sweep();
}

template <class Value, class Begin, class Give>
Outcome<void> Engine::gather(VertexValues<Value>& values, const Begin& begin, const Give& give) {
  static_assert(sizeof(Value) == sizeof(uint32_t));
  const graphfmt::DualGeometry& geometry = graph_.geometry();
  begin_iteration();
  for (uint32_t i = 0; i < geometry.partitions(); ++i) {
    const uint32_t own = ascends_ ? i : geometry.partitions() - 1 - i;
    if (geometry.size(own) == 0) continue;
    const auto begun = begin(own);
    if (!begun) return begun.error();
    Strips strips(graph_, own);
    if (auto loaded = graph_.load(strips.blocks(), pool_); !loaded) return loaded;
    const BlockSweep::Body body = [&](unsigned worker, const SweepChunk& chunk,
                                      const ChunkLists& lists) -> Outcome<void> {
      strips.take(chunk, lists, values.held(chunk.index->other),
                  [&](uint32_t vertex, std::span<const uint32_t> of_neighbours) {
                    give(worker, *begun, vertex, of_neighbours);
                  });
      return {};
    };
    // In memory, strips end soon after they have begun. Else as many as fit wait until all
    // intervals have been held.
    const uint64_t waiting_max = values.is_in_memory() ? ~uint64_t{0} : kWaitingValuesMax;
    while (strips.has_more()) {
      plan_.clear();
      strips.add_to(plan_, waiting_max);
      if (values.is_in_memory()) {
        if (auto swept = sweep_.run(plan_, body); !swept) return swept;
        continue;
      }
      for (uint32_t other = 0; other < geometry.partitions(); ++other) {
        SweepPlan of_other;
        for (const SweepChunk& chunk : plan_.chunks) {
          if (chunk.index->other == other) of_other.chunks.push_back(chunk);
        }
        if (of_other.chunks.empty()) continue;
        const auto held = values.read(other);
        if (!held) return held.error();
        if (auto swept = sweep_.run(of_other, body); !swept) return swept;
      }
    }
  }
  return end_full_sweep();
}

}  // namespace graphlane::hybrid
