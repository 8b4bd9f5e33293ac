// GridGraph's grid: edges sorted into P × P blocks by the partition of their
// source (row i) and of their target (column j).
//
//              target  0     1     2
//   source 0       | 0,0 | 0,1 | 0,2 |     `row`     0,0 0,1 0,2 1,0 1,1 …
//          1       | 1,0 | 1,1 | 1,2 |     `column`  0,0 1,0 2,0 0,1 1,1 …
//          2       | 2,0 | 2,1 | 2,2 |     `block-i-j` each block alone
//
// build_grid() writes the bytes that GridGraph's own `preprocess` writes with one thread, with any
// number of threads; FORMAT.md has the details. A graph may be far larger than the memory budget.
// Its input is then sorted in runs that are spilled beside the output (at most one more copy of the
// edges), and read back block by block.
//
// The grid is built in a sibling directory `.NAME.partial-PID` and renamed when it
// is complete. An error removes that directory; if the process is killed, the
// next build of the same grid does. A power failure is not guarded against.
//
// The default number of partitions is that of `preprocess` without -p: one for each 2^20 vertices,
// rounded down, at least one (where `preprocess` would divide by zero). Above 32 a grid has no more
// of them than leave 256 edges for an average block: each block is a file, and GridGraph wants also
// the empty ones. That concerns only graphs with fewer edges than vertices. Selective scheduling
// needs more partitions; GridGraph's paper uses 4 to 32.
#pragma once

#include <cstdint>
#include <string>

#include "graphfmt/edge_list.h"

namespace graphlane::graphfmt {

inline constexpr uint32_t kPartitionsMax = 2048;

struct GridOptions {
  std::string input;
  EdgeFormat format = EdgeFormat::kSnap;
  std::string output;       // a directory
  bool weighted = false;    // edge type 1: int32, int32, float32
  uint64_t vertices = 0;    // 0: the largest vertex number + 1
  uint32_t partitions = 0;  // 0: choose
  uint64_t memory_budget_bytes = uint64_t{1} << 30;
  unsigned threads = 0;    // 0: one per available core, as memory allows
  bool overwrite = false;  // replace an existing grid (never anything else)
  // false: block-i-j are holes of their size, which suffices for GridGraph
  bool blocks = true;
  EdgeListOptions reading = {};  // the other options of the list
  uint32_t run_edges = 0;        // for tests: edges in a run; 0: 24 MiB, as GridGraph reads
};

struct GridSummary {
  uint64_t vertex_count = 0;
  uint64_t edge_count = 0;
  uint32_t partitions = 0;
  uint64_t output_bytes = 0;            // of all files
  uint64_t spilled_bytes = 0;           // 0: the graph fitted into the memory budget
  std::vector<std::string> notes = {};  // of the list: EdgeListSummary
};

Outcome<GridSummary> build_grid(const GridOptions& options);

// Whether a grid may replace the directory: it is a grid or empty. EEXIST: neither.
Outcome<void> may_become_grid(const std::string& dir);

struct GridInfo {
  bool weighted = false;
  uint64_t vertex_count = 0;
  uint64_t edge_count = 0;
  uint32_t partitions = 0;
};

// The facts of the grid in `dir`, after checking that its files agree: `meta`, the size of every
// block, both offset tables, the sizes of row and column. Anything missing, truncated or foreign
// gives one line: file, offset, reason.
Outcome<GridInfo> read_grid(const std::string& dir);

// read_grid(), then checks every edge of `row`, `column` and the blocks. Each vertex must lie in
// the partition of its place. The three copies must be equal (two, if blocks are holes).
Outcome<GridInfo> check_grid(const std::string& dir);

}  // namespace graphlane::graphfmt
