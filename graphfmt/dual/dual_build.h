// build_dual: an edge list to a graph of the format `dual` (dual.h), within a memory budget.
//
//   read_edges ─▶ ArcSorter ─▶ by source: lists, cut at the intervals' ends ─▶ a row of blocks ─▶ out.blocks
//                           ─▶ by target: the same ─▶ in.blocks (directed)
//
// The directory is built beside its name and renamed when it is complete (staging.h). The files do
// not depend on the number of threads, nor on the budget if P is given.
//
// Memory beyond the budget: the blocks of one row. Their lists and weights are spilled beyond an
// eighth of the budget.
#pragma once

#include "graphfmt/codec/codec.h"
#include "graphfmt/dual/dual.h"
#include "graphfmt/edge_list.h"
#include "graphfmt/stored_graph_build.h"

namespace graphlane::graphfmt {

struct DualOptions {
  // Its memory budget and threads are for all. `undirected` makes an undirected graph; `simple`: of
  // equal arcs the first stays.
  EdgeListOptions input;
  std::string output;  // a directory
  CodecKind codec = CodecKind::kVarint;
  uint32_t partitions = 0;  // 0: see dual_partitions()
  bool overwrite = false;   // replace a stored graph, or an empty directory (never anything else)
  size_t run_edges = 0;     // for tests: edges in a run of the sort
};

struct DualSummary : StoredGraphSummary {
  uint32_t partitions = 0;
  uint64_t lists_bytes = 0;  // of all sides
  uint64_t index_bytes = 0;
};

Outcome<DualSummary> build_dual(const DualOptions& options);

// The P with which a graph can be computed within a budget. An average block, as raw lists, and the
// values of its two intervals must fit into a quarter of it. No more than that: with fewer blocks a
// vertex's neighbours are in fewer places.
uint32_t dual_partitions(uint64_t vertex_count, uint64_t arc_count, uint64_t budget_bytes);

}  // namespace graphlane::graphfmt
