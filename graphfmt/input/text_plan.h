// TextPlan: how to read a text: its parsed header, and its columns.
//
//   %%MatrixMarket matrix coordinate real symmetric     Matrix Market: rows, columns and entries are
//   5 5 3                                                declared; a symmetric one holds one half
//   % asym positive                                     KONECT: SOURCE TARGET [WEIGHT [TIME]]
//   p sp 5 8                                            DIMACS: vertices and arcs are declared
//   from,to,weight                                      CSV: a header if --header says so
//
// Vertices of Matrix Market, KONECT and DIMACS count from 1 in the file, from 0 here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graphfmt/edge_list.h"
#include "graphfmt/input/columns_text.h"

namespace graphlane::graphfmt {

struct TextPlan {
  EdgeFormat format = EdgeFormat::kSnap;
  ColumnsDialect dialect;   // `numbers` alone where `quick`
  bool quick = true;        // parse_snap() does it
  size_t header_bytes = 0;  // of the head, read already
  uint64_t header_lines = 0;
  bool mirror = false;                     // every edge both ways, a self-loop once
  bool negate = false;                     // … the second with the weight's other sign
  std::optional<uint64_t> declared_lines;  // edges before they are mirrored
  std::optional<uint64_t> noted_lines;  // as declared_lines, but others than these are only noted
  std::optional<uint64_t> declared_vertices;
  uint64_t target_offset = 0;  // added to targets: KONECT's second set of vertices
  std::vector<std::string> notes;
};

// `head`: the first bytes of the text; `format` is not kAuto. Errors say line and reason, without
// the path.
Outcome<TextPlan> plan_text(const EdgeListOptions& options, EdgeFormat format,
                            std::string_view head);

}  // namespace graphlane::graphfmt
