// The layout of a GridGraph grid: its blocks, in the order of `column`.
#pragma once

#include <string>

#include "adapters/share/client/job.h"
#include "graphfmt/grid/grid.h"

namespace graphlane::share {

struct GridBlocks {
  graphfmt::GridInfo info;
  Layout layout;
  std::string file;  // `column`
};

// Reads only `meta` and `column_offset`.
Outcome<GridBlocks> read_grid_blocks(const std::string& dir);

}  // namespace graphlane::share
