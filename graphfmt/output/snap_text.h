// SNAP text, in memory: a piece of it to edges and back. Pure functions; the
// reader (edge_list.h) cuts files into pieces at line ends and runs them on all
// cores.
//
//   # comment        '#' or '%' first on a line
//   0<TAB>1          SOURCE TARGET, tabs or spaces between, LF or CRLF at the end
//   0 2 1.5          a third column, the weight, exactly if `weighted`
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graphfmt/edge.h"

namespace graphlane::graphfmt {

// UTF-8 text may begin with it.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

struct SnapDialect {
  bool weighted = false;
  uint64_t vertices = 0;  // every number must be below this; 0: any below vertex_count_max
  WeightType weight_type = WeightType::kFloat32;
  bool round_weights = false;  // also whole numbers that the type does not hold
  uint64_t vertex_count_max = kListVertexCountMax;
  uint32_t base = 0;     // the first vertex in the text; the edges count from 0
  unsigned columns = 0;  // all columns of a line; 0: two, with weights three
  char prefix = 0;       // the first column, no part of `columns`: 'a' in DIMACS files
  char comments[2] = {'#', '%'};

  uint64_t limit() const { return vertices != 0 ? vertices : vertex_count_max; }
  unsigned used_columns() const { return weighted ? 3 : 2; }
  unsigned expected_columns() const { return columns != 0 ? columns : used_columns(); }
  size_t edge_bytes() const { return edge_size_bytes(weighted, weight_type); }
};

// Why a line is not an edge; lines count from 0 within the piece.
struct SnapIssue {
  uint64_t line_index = 0;
  std::string reason;
};

struct SnapParsed {
  size_t edge_count = 0;
  uint64_t line_count = 0;  // line ends seen
  uint32_t vertex_max = 0;
  uint64_t rounded_count = 0;      // weights with more digits than their type holds
  std::optional<SnapIssue> issue;  // then the rest of the piece was not looked at
};

// The shortest edge, "0 0\n", takes 4 bytes of text and 8 of records; with a
// weight 6, and 12 or 16. A last line may lack its line end.
constexpr size_t snap_records_bytes_max(size_t text_bytes, bool weighted = false) {
  return (weighted ? 3 : 2) * text_bytes + 16;
}

// `records` has room for snap_records_bytes_max(text.size(), dialect.weighted).
SnapParsed parse_snap(std::string_view text, const SnapDialect& dialect, char* records);

// How an edge stands on its line.
struct LineStyle {
  char delimiter = '\t';
  uint32_t base = 0;  // the first vertex in the text
  char prefix = 0;    // 'a' in DIMACS files, with a blank behind it
};

// Bytes that an edge takes at most: a prefix, two numbers, a weight, two tabs, a line end.
constexpr size_t snap_line_bytes_max(bool weighted) { return weighted ? 58 : 24; }

// "0\t1\n" for every edge, or in another style; `text` has room for
// edge_count × snap_line_bytes_max(). Returns the end of what was written.
char* format_snap(const EdgeBatch& batch, char* text, const LineStyle& style = {});

// Quotes foreign text for a message: at most 24 printable characters.
std::string quoted(std::string_view token);

// Why `number` cannot be a vertex, e.g. "'7' is not below the vertex count, 5". `vertices` of 0: it
// is beyond `vertex_count_max`.
std::string vertex_out_of_range(std::string_view number, uint64_t vertices,
                                uint64_t vertex_count_max);

// Why `token` is no vertex; `base` is the first.
std::string why_not_vertex(std::string_view token, const SnapDialect& dialect);
// Why `token` is no weight of the type, or loses digits as one.
std::string why_not_weight(std::string_view token, WeightType type);

}  // namespace graphlane::graphfmt
