// build_pages: an edge list to a graph of the format `pages` (pages.h), within a memory budget.
//
//   read_edges ─▶ ArcSorter ─▶ by source: out.pages
//                           ─▶ by target: in.pages (directed)
//
// The directory is built beside its name and renamed when it is complete (staging.h). The files
// depend neither on the number of threads nor on the budget.
//
// Memory beside the budget: 12 bytes a page of one direction.
#pragma once

#include "graphfmt/codec/codec.h"
#include "graphfmt/edge_list.h"
#include "graphfmt/pages/pages.h"
#include "graphfmt/stored_graph_build.h"

namespace graphlane::graphfmt {

struct PagesOptions {
  // Its memory budget and threads are for all. `undirected` makes an undirected graph; `simple`: of
  // equal arcs the first stays.
  EdgeListOptions input;
  std::string output;  // a directory
  CodecKind codec = CodecKind::kVarint;
  uint32_t page_bytes = kPageBytesUsual;
  // replace a stored graph, or an empty directory (never anything else)
  bool overwrite = false;
  size_t run_edges = 0;  // for tests: edges in a run of the sort
};

struct PagesSummary : StoredGraphSummary {
  uint64_t value_bytes = 0;  // of all directions, with weights
  uint64_t page_count = 0;   // of all directions
};

Outcome<PagesSummary> build_pages(const PagesOptions& options);

}  // namespace graphlane::graphfmt
