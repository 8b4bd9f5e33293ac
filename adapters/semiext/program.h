// Shared by the programs in programs/: their place in the registry, and arrays of vertex state.
#pragma once

#include <cstdint>

#include "adapters/graph/algorithm.h"
#include "adapters/graph/graph.h"
#include "adapters/graph/shared_value.h"
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
Outcome<AlgorithmResult> run_program(const ProgramRun& run, const char* name,
                                     Engine<Program>& engine, const MakeResult& make_result) {
  RunProgress progress(name, run.options.iterations.value_or(0));
  engine.set_progress(&progress);
  if (Outcome<void> done = engine.run(); !done) return done.error();
  AlgorithmResult result = make_result();
  result.stats = engine.stats();
  return result;
}

}  // namespace graphlane::semiext
