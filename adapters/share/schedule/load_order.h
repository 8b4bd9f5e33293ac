// The order in which partitions are loaded: GraphM's formula 5.
//
//   Pri(P^i) = max over the jobs j that need P^i of 1 / N_j(P)  ×  N(J^i)
//
// N_j(P) is the number of partitions that job j still needs, N(J^i) the number of jobs that need
// partition i. A partition that many jobs need comes early. So does one that is among the last of a
// job, because that job soon begins its next iteration and may share the loads that follow. Ties go
// by place in the graph, so that a device reads forwards. A partition's units (units.h) stay
// together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapters/share/schedule/partition_set.h"

namespace graphlane::share {

enum class LoadOrder {
  kPriority,
  kGraph,  // by place in the graph: GraphM's "without scheduling", for comparison
};

// The units that any job needs, those of the most urgent partition first. `first_of_same`: for each
// unit the first one of its partition; empty: each unit is a partition.
std::vector<uint32_t> load_order(std::span<const PartitionSet* const> needs_of_jobs,
                                 uint32_t unit_count, LoadOrder how = LoadOrder::kPriority,
                                 std::span<const uint32_t> first_of_same = {});

}  // namespace graphlane::share
