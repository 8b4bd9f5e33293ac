// The layout of a GridGraph grid: its blocks, as they stand in `column`.
#pragma once

#include <string>

#include "adapters/share/client/job.h"
#include "graphfmt/grid/grid.h"

namespace graphlane::share {

struct GridBlocks {
  GridInfo info;
  Layout layout;
  std::string file;  // `column`
};

// Reads `meta` and `column_offset` only: what else the grid has is not needed.
Outcome<GridBlocks> read_grid_blocks(const std::string& dir);

}  // namespace graphlane::share
