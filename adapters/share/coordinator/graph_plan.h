// GraphPlan: whether a graph stays in memory as a whole, and how it is cut into chunks, units and
// batches. Decided once, when the graph is made, by its size and its part of the budget.
//
//   fits (an eighth stays free)   resident: every partition is one unit, mapped once
//   does not fit                  a chunk is at most a 32nd of the part, a unit is a chunk
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adapters/share/schedule/chunk_size.h"
#include "adapters/share/schedule/global_table.h"
#include "adapters/share/schedule/units.h"
#include "adapters/share/wire/layout.h"

namespace graphlane::share {

struct GraphLimits {
  uint64_t part_bytes = 0;      // of the budget
  size_t buffer_count_max = 0;  // that descriptors allow
  LastLevelCache cache;
  LoadOrder order = LoadOrder::kPriority;
};

struct GraphPlan {
  bool has_edges = false;    // of known size, in files: they have chunks and labels
  bool is_resident = false;  // all units fit, and none is ever evicted
  uint64_t chunk_bytes = UINT64_MAX;
  Units units;
  GlobalTable::Batching batching;
};

// `vertex_bytes`: U_v of formula 1, of the graph's first job.
GraphPlan plan_graph(const Layout& layout, const std::vector<uint64_t>& partition_bytes,
                     uint32_t vertex_bytes, const GraphLimits& limits);

}  // namespace graphlane::share
