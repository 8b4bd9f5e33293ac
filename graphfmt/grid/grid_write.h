// write_grid: sorted runs to the files of a grid. The second half of build_grid().
//
// Blocks are written in groups of neighbours in row-major order:
//
//   run 0  [··|aa|b|cc|···]
//   run 1  [·|a|bbbb|c|···]   ─gather─▶  aaa bbbbb ccc  ─▶  `row` in one piece,
//   run 2  [···|a|b|c|····]              (one group)        `column` and block files
//                                                            block by block
//
// A block larger than a group is copied run by run instead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphfmt/grid/grid_layout.h"
#include "graphfmt/sort/run_store.h"

namespace graphlane::graphfmt {

struct GridWriteJob {
  std::string dir;
  std::string label;  // for Progress
  bool weighted = false;
  bool blocks = true;  // false: holes of their size
  uint64_t vertex_count = 0;
  GridLayout layout;
  size_t run_bytes = 0;
  unsigned threads = 1;
  uint64_t group_bytes = 0;                 // memory of one thread for a group
  std::vector<uint64_t> block_edge_counts;  // row-major
};

// Bytes that it keeps beside groups and runs.
constexpr uint64_t grid_write_overhead_bytes(size_t block_count) {
  return 3 * block_count * sizeof(uint64_t);
}

// The bytes written to all files.
Outcome<uint64_t> write_grid(const GridWriteJob& job, const RunStore& runs);

}  // namespace graphlane::graphfmt
