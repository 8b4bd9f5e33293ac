// One run of an operator: the state table, rounds until what is left is below the tolerance, and
// what that took.
#pragma once

#include <chrono>
#include <optional>

#include "adapters/graph/algorithm.h"
#include "adapters/graph/progress.h"
#include "adapters/graph/vertex_array.h"
#include "adapters/kv/maiter/engine.h"
#include "graphfmt/sort/line.h"

namespace graphlane::maiter {

struct RunOptions {
  const RunRequest& request;
  const char* name = "";
  double tolerance = 0;  // of a sum: Σ|Δ| at the end, at most
  bool scales = false;   // the values of a warm start may all be multiplied by one number
};

// The counts at the end of a round.
struct RoundEnd {
  double seconds = 0;
  double left = 0;
  kv::KvCounts counts;
};

struct Finished {
  VertexArray<double> values;
  RunStats stats;
  kv::KvCounts counts;
  std::vector<RoundEnd> rounds;  // the first kRoundsMax of them; none of a run by workers
};
inline constexpr size_t kRoundsMax = 10'000;

// "hot-last" is the hot-aware cache as in the paper: the hotness is the latest priority, whatever
// the length of a list.
inline constexpr char kHotLast[] = "hot-last";

inline kv::KvOptions kv_options(const RunRequest& request, unsigned threads) {
  return {
      .cache = {.budget_bytes = request.in_memory ? 0 : request.cache_bytes,
                .policy = kv::parse_policy(request.kv.cache_policy).value_or(kv::PolicyKind::kHot),
                .hotness = kv::HotnessKind::kLast,
                .shards = threads > 1 ? 4 * threads : 1,
                .per_byte = request.kv.cache_policy != kHotLast},
      .in_memory = request.in_memory};
}

inline EngineOptions engine_options(const RunOptions& run, uint64_t vertex_count) {
  return {
      .portion = run.request.kv.portion,
      .least = run.tolerance / (2 * std::max<double>(1, static_cast<double>(vertex_count))),
      .hotness =
          run.request.kv.cache_policy == kHotLast ? HotnessFrom::kPriority : HotnessFrom::kGets,
      .buffer = {.frames = run.request.kv.buffer_pages, .depth = run.request.kv.prefetch_pages}};
}

// Sets v and Δ to what the operator begins with.
template <class Op>
void begin_state(const Op& op, StateTable& table) {
  for (uint64_t v = 0; v < table.size(); ++v) {
    table.value(v) = Op::kIsSum ? 0 : kNothingYet;
    table.delta(v) = op.first_delta(static_cast<VertexId>(v));
  }
}

// A sum that begins with values: Δ becomes what they lack. `engine` is of the whole table.
template <class Op>
Outcome<void> warm_start(const Op& op, StateTable& table, Engine<Op>& engine,
                         std::span<const double> values, bool scales) {
  // Δ = first - v + what v sends; with Δ = 0 the values are the fixpoint.
  double first_sum = 0, lacking_sum = 0;
  for (uint64_t v = 0; v < table.size(); ++v) {
    first_sum += table.delta(v);
    table.delta(v) = -values[v];
  }
  if (Outcome<void> sent = engine.send_all([&](VertexId v) { return values[v]; }); !sent) {
    return sent;
  }
  for (uint64_t v = 0; v < table.size(); ++v) lacking_sum -= table.delta(v);
  // Scales the values so that their Δ add up to 0, which is nearer to the fixpoint.
  const double scale = scales && lacking_sum > 0 ? first_sum / lacking_sum : 1;
  for (uint64_t v = 0; v < table.size(); ++v) {
    table.value(v) = scale * values[v];
    table.delta(v) = scale * table.delta(v) + op.first_delta(static_cast<VertexId>(v));
  }
  return {};
}

Outcome<std::vector<double>> read_init(const std::string& path, uint64_t vertex_count);

// In this process.
template <class Op>
Outcome<Finished> run_alone(const Op& op, kv::KvGraph& graph, WorkerPool& pool,
                            const RunOptions& options) {
  const uint64_t count = graph.vertex_count();
  Finished finished;
  finished.values.resize(count);
  VertexArray<double> deltas(count);
  StateTable table(finished.values, deltas, Op::kIsSum);
  begin_state(op, table);
  Engine<Op> engine(graph, op, table, 0, count, pool, engine_options(options, count));
  if constexpr (Op::kIsSum) {
    if (!options.request.kv.init.empty()) {
      const auto values = read_init(options.request.kv.init, count);
      if (!values) return values.error();
      if (auto warm = warm_start(op, table, engine, *values, options.scales); !warm) {
        return warm.error();
      }
    }
  }
  const double left_at_first = engine.left();
  const auto begin = std::chrono::steady_clock::now();
  RunProgress progress(options.name, 0);
  while (true) {
    const auto went_on = engine.run_round();
    if (!went_on) return went_on.error();
    if (!*went_on) break;
    progress.iteration_ended();
    const double left = engine.left();
    if (finished.rounds.size() < kRoundsMax) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      finished.rounds.push_back(
          {.seconds = passed.count(), .left = left, .counts = engine.counts()});
    }
    if (!Op::kIsSum) continue;
    if (left <= options.tolerance) break;
    if (!(left < 1e6 * (1 + left_at_first))) {
      return make_error(EINVAL, "{}: does not converge: a smaller --alpha does", options.name);
    }
  }
  finished.stats = engine.stats();
  finished.counts = engine.counts();
  return finished;
}

}  // namespace graphlane::maiter
