// Reading all of a graph of the format `lists`: its lists, its edges, and whether it is sound.
//
// Every piece that is read is compared with its checksum, and every list is decoded: a damaged
// graph is one line that names file, byte and reason.
#pragma once

#include "graphfmt/edge_list.h"
#include "graphfmt/list_sink.h"
#include "graphfmt/lists/lists.h"

namespace graphlane::graphfmt {

struct ScanOptions {
  std::string label = "read";                         // for Progress
  bool with_weights = true;                           // if there are any
  uint64_t memory_budget_bytes = uint64_t{64} << 20;  // more only for a list that is longer
  unsigned threads = 0;                               // 0: one for each core we may use
};

// Gives all lists of a direction, ascending, to the sink.
Outcome<void> scan_lists(const Lists& lists, Direction direction, const ScanOptions& options,
                         ListSink& sink);

// The edges of `options.path`, a directory, by source and target; of an undirected graph each once,
// from the smaller end. Weights come if `options.weighted`; EINVAL: there are none.
Outcome<EdgeListSummary> read_lists(const EdgeListOptions& options, EdgeSink& sink);

// Opens it, reads all, and compares the two directions: they hold the same arcs. Returns the
// header.
Outcome<GraphHeader> check_lists(const std::string& path, unsigned threads = 0);

}  // namespace graphlane::graphfmt
