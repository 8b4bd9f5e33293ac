// `convert` to the format `dual`, and `info` on it (graphfmt/dual/dual.h).
#pragma once

#include "cli/command.h"
#include "cli/graph/convert_lists.h"

namespace graphlane::cli {

// As convert_to_lists(). `partitions`: P; 0: chosen by the graph's size and the memory.
Outcome<std::vector<std::string>> convert_to_dual(const ToStored& options, uint32_t partitions);

Outcome<int> show_dual(const std::string& path, bool as_json);

}  // namespace graphlane::cli
