// Shared by the programs in programs/: their place in the registry, and arrays of vertex state.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "adapters/graph/algorithm.h"
#include "adapters/graph/graph.h"
#include "adapters/graph/vertex_array.h"
#include "adapters/graph/worker_pool.h"
#include "adapters/semiext/engine.h"

namespace graphlane::semiext {

struct ProgramRun {
  const Graph& graph;
  WorkerPool& pool;
  const AlgorithmOptions& options;
  bool wants_values;
};

using ProgramFunction = Outcome<AlgorithmResult> (*)(const ProgramRun& run);

Outcome<AlgorithmResult> run_bfs(const ProgramRun& run);
Outcome<AlgorithmResult> run_pagerank(const ProgramRun& run);
Outcome<AlgorithmResult> run_wcc(const ProgramRun& run);
Outcome<AlgorithmResult> run_sssp(const ProgramRun& run);
Outcome<AlgorithmResult> run_triangles(const ProgramRun& run);
Outcome<AlgorithmResult> run_lcc(const ProgramRun& run);
Outcome<AlgorithmResult> run_cdlp(const ProgramRun& run);
Outcome<AlgorithmResult> run_kcore(const ProgramRun& run);
Outcome<AlgorithmResult> run_betweenness(const ProgramRun& run);
Outcome<AlgorithmResult> run_scan(const ProgramRun& run);
Outcome<AlgorithmResult> run_msbfs(const ProgramRun& run);
Outcome<AlgorithmResult> run_pagerank_delta(const ProgramRun& run);

// Runs the engine, with progress. Calls `make_result` on success, and adds the engine's statistics.
template <class Program, class MakeResult>
Outcome<AlgorithmResult> run_program(const ProgramRun& run, const char* name, Engine<Program>& engine,
                                     const MakeResult& make_result) {
  RunProgress progress(name, run.options.iterations.value_or(0));
  engine.set_progress(&progress);
  if (Outcome<void> done = engine.run(); !done) return done.error();
  AlgorithmResult result = make_result();
  result.stats = engine.stats();
  return result;
}

// State of another vertex than the one that runs: several workers may read and change it at once.
// Relaxed: it orders nothing else; the end of an iteration orders all.
template <class T>
T load_shared(const T& value) {
  return std::atomic_ref<T>(const_cast<T&>(value)).load(std::memory_order_relaxed);
}
template <class T>
void store_shared(T& value, T to) {
  std::atomic_ref<T>(value).store(to, std::memory_order_relaxed);
}
// Returns whether `to` was less.
template <class T>
bool lower_shared(T& value, T to) {
  std::atomic_ref<T> shared(value);
  T now = shared.load(std::memory_order_relaxed);
  while (to < now) {
    if (shared.compare_exchange_weak(now, to, std::memory_order_relaxed)) return true;
  }
  return false;
}
template <class T>
T add_shared(T& value, T more) {
  if constexpr (std::is_integral_v<T>) {
    return std::atomic_ref<T>(value).fetch_add(more, std::memory_order_relaxed);
  } else {
    std::atomic_ref<T> shared(value);
    T now = shared.load(std::memory_order_relaxed);
    while (!shared.compare_exchange_weak(now, now + more, std::memory_order_relaxed)) {
    }
    return now;
  }
}

// One of T for each worker, in cache lines of their own.
template <class T>
class PerWorker {
 public:
  explicit PerWorker(const WorkerPool& pool) : all_(pool.size()) {}
  T& operator[](unsigned worker) { return all_[worker].value; }
  template <class Fold>
  void fold(const Fold& each) {
    for (Slot& slot : all_) each(slot.value);
  }

 private:
  struct alignas(64) Slot {
    T value{};
  };
  std::vector<Slot> all_;
};

}  // namespace graphlane::semiext
