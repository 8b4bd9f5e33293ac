// In which order partitions are loaded: GraphM's formula 5.
//
//   Pri(P^i) = max over the jobs j that need P^i of 1 / N_j(P)  ×  N(J^i)
//
// N_j(P) partitions are what job j still needs, N(J^i) jobs need partition i. A
// partition that many jobs need comes early, and so does one whose job needs few
// others: that job is soon in its next iteration, and may then share what the others
// are about to load. Of equals the one that comes first in the graph, so that a
// device is read forwards. A partition's units (units.h) stay together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapters/share/schedule/partition_set.h"

namespace graphlane::share {

enum class LoadOrder {
  kPriority,
  kGraph,  // as they stand there: GraphM's "without scheduling", to compare with
};

// The units that any job needs, those of the most urgent partition first. `first_of_same`: of each
// unit the first one of its partition; empty: each is one.
std::vector<uint32_t> load_order(std::span<const PartitionSet* const> needs_of_jobs, uint32_t unit_count,
                                 LoadOrder how = LoadOrder::kPriority,
                                 std::span<const uint32_t> first_of_same = {});

}  // namespace graphlane::share
