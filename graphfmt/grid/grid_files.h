// The files of a grid: names, and the shape of what stands in them. FORMAT.md
// has the whole description. Writer and readers share this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphfmt/grid/grid.h"

namespace graphlane::graphfmt {

inline std::string block_path(const std::string& dir, uint32_t i, uint32_t j) {
  return dir + "/block-" + std::to_string(i) + "-" + std::to_string(j);
}

// The offset tables have one entry for each block and one for the end.
constexpr uint64_t offset_table_bytes(uint32_t partitions) {
  return (uint64_t{partitions} * partitions + 1) * sizeof(int64_t);
}

inline constexpr size_t kGridMetaBytesMax = 100;  // four numbers

// Parses `meta`; errors call it `path`.
Outcome<GridInfo> parse_grid_meta(const std::string& text, const std::string& path);

// One of the two offset tables. It is not checked against the blocks' own files, which engines do
// not read and which may be missing. Errors call it `path`.
Outcome<std::vector<int64_t>> parse_offset_table(std::string_view bytes, const GridInfo& info,
                                                 const std::string& path);

// `preprocess` reads its input in pieces of this size. A block that gets exactly one edge from a
// piece holds it back, until kHeldBytes of such edges have come together or the input ends. Its
// files come out byte for byte only in this way.
inline constexpr size_t kRunBytes = size_t{24} << 20;
inline constexpr size_t kHeldBytes = 768;
static_assert(kRunBytes % sizeof(Edge) == 0 && kRunBytes % sizeof(WeightedEdge) == 0);
static_assert(kHeldBytes % sizeof(Edge) == 0 && kHeldBytes % sizeof(WeightedEdge) == 0);

}  // namespace graphlane::graphfmt
