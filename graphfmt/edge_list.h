// Edge lists: reading them, whatever their format, and converting one into
// another. FORMAT.md describes the formats byte by byte.
//
// read_edges() streams: all cores parse, the sink gets the edges in the order of
// the file, and no more than `memory_budget_bytes` is in use.
//
// A list that is not well formed gives one line that names the file, the line
// (text; exact although parsed in parallel) or the byte offset (binary), and the
// reason, quoting what it stumbled over:
//
//   web.txt: line 4711: 'abc' is not a vertex number
//   web.bin: byte 37880: truncated record: 3 of 8 bytes
//
// The first such place in the file is the one that is reported. Edges before it
// may have reached the sink. A list without any edge is an error too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graphfmt/edge.h"

namespace graphlane {

enum class EdgeFormat {
  kSnap,  // text: SOURCE TARGET [WEIGHT] a line, '#' and '%' comments, plain or gzipped
  kBin,   // int32 pairs (with weights: int32, int32, float32), as GridGraph and X-Stream take them
  kU32,   // the same with uint32
};

// "snap" (or "txt"), "bin", "u32".
Outcome<EdgeFormat> parse_edge_format(std::string_view name);
std::string_view name_of(EdgeFormat format);

struct EdgeListOptions {
  std::string path;
  EdgeFormat format = EdgeFormat::kSnap;
  bool weighted = false;           // text: a third column; binary: 12-byte records
  uint64_t vertices = 0;           // every number must be below this; 0: any up to kVertexMax
  uint64_t memory_budget_bytes = uint64_t{64} << 20;
  unsigned threads = 0;            // 0: one for each core we may use
};

struct EdgeListSummary {
  uint64_t edge_count = 0;
  uint64_t vertex_count = 0;  // the largest number seen + 1
};

Outcome<EdgeListSummary> read_edges(const EdgeListOptions& options, EdgeSink& sink);

struct EdgeListOutput {
  std::string path;
  EdgeFormat format = EdgeFormat::kBin;
  bool overwrite = false;     // without it, an existing path is refused
  std::string comment = {};   // text only: one '#' line each at the top
};

// Reads one list and writes another; output appears under its name when it is
// complete. Weights are kept iff `input.weighted`.
Outcome<EdgeListSummary> convert_edges(const EdgeListOptions& input, const EdgeListOutput& output);

}  // namespace graphlane
