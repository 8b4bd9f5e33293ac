// Shared by the programs in programs/: their place in the registry.
#pragma once

#include "adapters/graph/algorithm.h"
#include "adapters/hybrid/engine.h"

namespace graphlane::hybrid {

struct ProgramRun {
  Engine& engine;
  const AlgorithmOptions& options;
  bool wants_values;

  const DualGraph& graph() const { return engine.graph(); }
  uint64_t vertex_count() const { return engine.graph().vertex_count(); }
};

using ProgramFunction = Outcome<AlgorithmResult> (*)(const ProgramRun& run);

Outcome<AlgorithmResult> run_bfs(const ProgramRun& run);
Outcome<AlgorithmResult> run_pagerank(const ProgramRun& run);
Outcome<AlgorithmResult> run_wcc(const ProgramRun& run);
Outcome<AlgorithmResult> run_sssp(const ProgramRun& run);
Outcome<AlgorithmResult> run_cdlp(const ProgramRun& run);

}  // namespace graphlane::hybrid
