// Reading all of a graph of the format `pages`: its lists, its edges, and whether it is sound.
//
// Every page is compared with its checksum, and every list is decoded: a damaged graph is one line
// that names file, page or byte, and reason.
#pragma once

#include "graphfmt/edge_list.h"
#include "graphfmt/list_sink.h"
#include "graphfmt/pages/pages.h"

namespace graphlane::graphfmt {

// Gives all lists of a direction, ascending, to the sink. `label` is for Progress.
Outcome<void> scan_pages(const Pages& pages, Direction direction, const std::string& label,
                         unsigned threads, ListSink& sink);

// The edges of `options.path`, a directory, by source and target; of an undirected graph each once,
// from the smaller end. Weights come if `options.weighted`; EINVAL: there are none.
Outcome<EdgeListSummary> read_pages(const EdgeListOptions& options, EdgeSink& sink);

// Opens it, reads all, and compares the two directions: they hold the same arcs. Returns the
// header.
Outcome<GraphHeader> check_pages(const std::string& path, unsigned threads = 0);

}  // namespace graphlane::graphfmt
