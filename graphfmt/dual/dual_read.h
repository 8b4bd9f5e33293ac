// Reading all of a graph of the format `dual`: its lists, its edges, and whether it is sound.
//
// Every piece that is read is compared with its checksum, and every list is decoded: a damaged
// graph is one line that names file, byte and reason.
#pragma once

#include "graphfmt/dual/dual.h"
#include "graphfmt/edge_list.h"
#include "graphfmt/list_sink.h"

namespace graphlane::graphfmt {

struct DualScanOptions {
  std::string label = "read";  // for Progress
  bool with_weights = true;    // read weights if the graph has them
  // exceeded by a longer list, and by a row's indexes
  uint64_t memory_budget_bytes = uint64_t{64} << 20;
  unsigned threads = 0;                     // 0: one per available core
  uint32_t first_row = 0;                   // of blocks: the first interval of vertices
  uint32_t row_count = kDualPartitionsMax;  // fewer at the end
};

// Gives all lists of a side, ascending and whole, to the sink: the parts of a list that lie in
// several blocks are put together. Vertices and neighbours count from 0, not from their intervals.
Outcome<void> scan_dual(const Dual& dual, DualSide side, const DualScanOptions& options,
                        ListSink& sink);

// The edges of `options.path`, a directory, by source and target; of an undirected graph each once,
// from the smaller end. Weights come if `options.weighted`; EINVAL: there are none.
Outcome<EdgeListSummary> read_dual(const EdgeListOptions& options, EdgeSink& sink);

// Opens it, reads all, and compares the two sides: they hold the same arcs. Returns the header.
Outcome<GraphHeader> check_dual(const std::string& path, unsigned threads = 0);

}  // namespace graphlane::graphfmt
