// The files of a graph that engines sweep, and the sizes of their requests. Both follow from the
// format alone, without reading an edge.
//
//   grid     GridGraph: `column` and `row`, block by block as the offset tables say:
//            24 MiB at a time, the rest of a block in whole pages
//   shards   GraphChi: NAME.p_S.adj once by 16 MiB (the shard in memory) and once by
//            1 MiB (the sliding ones); NAME.p_S_blockdir_N/0, 1, …: each whole
//   unknown  neither: the engine is unknown
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graphfmt/graph_directory.h"
#include "graphfmt/grid/grid.h"
#include "graphfmt/request_sizes.h"

namespace graphlane::graphfmt {

enum class GraphFormat { kUnknown, kGrid, kShards };

// A file, or the files of a directory, that are swept.
struct Sweep {
  std::string name;  // "column"; of the files of a directory "directory/*"
  uint64_t file_count = 1;
  uint64_t bytes = 0;  // of all of them
  RequestSizes requests;
  bool is_rewritten = false;  // by every iteration
};

struct GraphRequests {
  GraphFormat format = GraphFormat::kUnknown;
  std::optional<GridInfo> grid;
  std::vector<Sweep> sweeps;
};

// A directory that has files of a format, but damaged ones, is an error: file, offset,
// reason.
Outcome<GraphRequests> find_requests(const GraphDirectory& directory);

// The name of the sweep that a file, by its path below the directory, belongs to.
std::string sweep_of(const std::string& file);

}  // namespace graphlane::graphfmt
