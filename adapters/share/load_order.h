// In which order partitions are loaded: GraphM's formula 5.
//
//   Pri(P^i) = max over the jobs j that need P^i of 1 / N_j(P)  ×  N(J^i)
//
// N_j(P) partitions are what job j still needs, N(J^i) jobs need partition i. A
// partition that many jobs need comes early, and so does one whose job needs few
// others: that job is soon in its next iteration, and may then share what the others
// are about to load. Of equals the one that comes first in the graph, so that a
// device is read forwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapters/share/partition_set.h"

namespace graphlane::share {

enum class LoadOrder {
  kPriority,
  kGraph,  // as they stand there: GraphM's "without scheduling", to compare with
};

// The partitions that any job needs, the most urgent first.
std::vector<uint32_t> load_order(std::span<const PartitionSet* const> needs_of_jobs,
                                 uint32_t partition_count, LoadOrder how = LoadOrder::kPriority);

}  // namespace graphlane::share
