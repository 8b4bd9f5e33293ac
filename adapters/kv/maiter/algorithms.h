// The algorithms of the engine `kv`. Each opens the graph of the request and runs on it; the error is
// one line.
#pragma once

#include <string_view>

#include "adapters/graph/algorithm.h"

namespace graphlane::maiter {

// sums.cc: values that are sums of deltas.
Outcome<AlgorithmResult> run_ranks(std::string_view algorithm, const RunRequest& request);
Outcome<AlgorithmResult> run_katz(std::string_view algorithm, const RunRequest& request);

// minima.cc: values that are the least of what comes.
Outcome<AlgorithmResult> run_components(std::string_view algorithm, const RunRequest& request);
Outcome<AlgorithmResult> run_paths(std::string_view algorithm, const RunRequest& request);

}  // namespace graphlane::maiter
