// build_lists: an edge list to a graph of the format `lists` (lists.h), within a memory budget.
//
//   read_edges ─▶ ArcSorter ─▶ by source: out.lists, out.index
//                           ─▶ by target: in.lists, in.index (directed)
//
// The directory is built beside its name and renamed when it is complete (staging.h). The files do
// not depend on the number of threads, nor on the budget.
//
// Memory beside the budget: the index of one direction, 1.25 to 2.5 bytes a vertex; where fewer
// than a quarter of the vertices can have a list, an eighth of a byte a vertex instead, and 2.5 a
// list.
#pragma once

#include "graphfmt/codec/codec.h"
#include "graphfmt/edge_list.h"
#include "graphfmt/lists/lists.h"
#include "graphfmt/stored_graph_build.h"

namespace graphlane::graphfmt {

struct ListsOptions {
  // Its memory budget and threads are for all. `undirected` makes an undirected graph; `simple`: of
  // equal arcs the first stays.
  EdgeListOptions input;
  std::string output;  // a directory
  CodecKind codec = CodecKind::kVarint;
  // replace a stored graph, or an empty directory (never anything else)
  bool overwrite = false;
  size_t run_edges = 0;  // for tests: edges in a run of the sort
};

struct ListsSummary : StoredGraphSummary {
  uint64_t lists_bytes = 0;  // of all directions
  // Bits an arc takes in the lists, without index and weights.
  double bits_an_arc(bool is_directed) const {
    const uint64_t arcs = arc_count * (is_directed ? 2 : 1);
    return arcs == 0 ? 0 : 8.0 * static_cast<double>(lists_bytes) / static_cast<double>(arcs);
  }
};

Outcome<ListsSummary> build_lists(const ListsOptions& options);

}  // namespace graphlane::graphfmt
