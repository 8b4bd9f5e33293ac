// The work of convert and info on a graph of the format `dual` (graphfmt/dual/dual.h).
#pragma once

#include "cli/command.h"
#include "cli/convert_lists.h"

namespace graphlane::cli {

// As convert_to_lists(). `partitions`: P; 0: as the graph and the memory want it.
Outcome<std::vector<std::string>> convert_to_dual(const ToStored& options, uint32_t partitions);

Outcome<int> show_dual(const std::string& path, bool as_json);

}  // namespace graphlane::cli
