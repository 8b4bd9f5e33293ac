// Edge lists: reading them, whatever their format, and converting one into
// another. FORMAT.md describes the formats byte by byte.
//
// read_edges() streams: all cores parse, the sink gets the edges in the order of
// the file, and no more than `memory_budget_bytes` is in use.
//
// A malformed list gives one line: the file, the line (text) or the byte offset (binary), and the
// reason, which quotes the offending text. Lines are exact although the text is parsed in parallel.
//
//   web.txt: line 4711: 'abc' is not a vertex number
//   web.bin: byte 37880: truncated record: 3 of 8 bytes
//
// The first such place in the file is reported. Edges before it may have reached the sink. A list
// without any edge is an error too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graphfmt/edge.h"

namespace graphlane::graphfmt {

enum class EdgeFormat {
  kAuto,  // read: from the name and the first bytes
  kSnap,  // text: SOURCE TARGET [WEIGHT] a line, '#' and '%' comments
  // int32 pairs (with weights: int32, int32, float32), as GridGraph and X-Stream take them
  kBin,
  kU32,     // as kBin, with uint32
  kU64,     // uint64 pairs; weights of 8 bytes behind each
  kCsv,     // text with commas (or what EdgeColumns says)
  kTsv,     // text with one tab between columns
  kMtx,     // Matrix Market, coordinate
  kKonect,  // KONECT's out.*: '%' banner, SOURCE TARGET [WEIGHT [TIME]], vertices from 1
  kDimacs,  // DIMACS .gr: "a SOURCE TARGET WEIGHT", vertices from 1
  kMetis,   // a line of neighbours for each vertex, from 1
  kGrid,    // a directory: GridGraph's grid
  kCsr,     // a directory: indptr.npy, indices.npy, perhaps data.npy
  kShards,  // a directory: GraphChi's shards
  kLists,   // a directory: adjacency lists (lists.h)
  kDual,    // a directory: in-blocks and out-blocks (dual/dual.h)
  kPages,   // a directory: adjacency lists by key (pages/pages.h)
};

// The format with this name, as --from and --to take them: "snap" (or "txt"), "bin", "u32" and so
// on.
Outcome<EdgeFormat> parse_edge_format(std::string_view name);
std::string_view name_of(EdgeFormat format);

// Where the vertices stand in a line of text. Columns count from 1.
struct EdgeColumns {
  char delimiter = 0;   // 0: the format's own; ' ': any number of blanks and tabs
  unsigned source = 0;  // 0: not given: the first columns, and no others may follow
  unsigned target = 0;
  unsigned weight = 0;  // 0 with `weighted`: the column behind the target
  bool header = false;  // the first line that is no comment is skipped
};

struct EdgeListOptions {
  std::string path;  // "-": standard input
  EdgeFormat format = EdgeFormat::kSnap;
  bool weighted = false;  // read the edges' weights
  // for the sink; a weight that it cannot hold is an error
  WeightType weight_type = WeightType::kFloat32;
  // in a binary file; none: float32, with kU64 float64
  std::optional<WeightType> stored_weights = {};
  bool round_weights = false;  // round such a weight instead
  uint64_t vertices = 0;       // every number must be below this; 0: below vertex_count_max
  uint64_t vertex_count_max = kListVertexCountMax;  // the sink's limit
  uint64_t memory_budget_bytes = uint64_t{64} << 20;
  unsigned threads = 0;      // 0: one per available core
  EdgeColumns columns = {};  // text
  bool undirected = false;   // every edge in both directions, a self-loop once
  bool simple = false;       // sorted by source and target, without self-loops and duplicates
  // not empty: vertices become 0 … n-1, and this file receives the mapping
  std::string renumber_map = {};
  bool overwrite_map = false;
  bool as_given = false;  // trust `format`, whatever the bytes look like
  // Gets a note that should not wait until the output is written; empty: it joins the others.
  std::function<void(const std::string&)> note_now = {};
  // for runs beyond the memory budget; empty: the system's temporary directory
  std::string spill_directory = {};
};

struct EdgeListSummary {
  uint64_t edge_count = 0;    // that reached the sink
  uint64_t vertex_count = 0;  // what the file says, or `vertices`, or the largest number seen + 1
  std::vector<std::string> notes = {};  // what the user should know, a line each
};

Outcome<EdgeListSummary> read_edges(const EdgeListOptions& options, EdgeSink& sink);

// Whether convert_edges() writes it.
bool is_written_format(EdgeFormat format);
// Whether its first lines say how many edges follow: it is written to a file, not to a pipe.
bool begins_with_counts(EdgeFormat format);

struct EdgeListOutput {
  std::string path;  // "-": standard output
  EdgeFormat format = EdgeFormat::kBin;
  bool overwrite = false;    // without it, an existing path is refused
  std::string comment = {};  // text only: one '#' line each at the top
  // for formats with a header that says so; convert_edges() takes the input's
  bool weighted = false;
  WeightType weight_type = WeightType::kFloat32;
};

// Reads one list and writes another; output appears under its name when it is
// complete. Weights are kept iff `input.weighted`.
Outcome<EdgeListSummary> convert_edges(const EdgeListOptions& input, const EdgeListOutput& output);

}  // namespace graphlane::graphfmt
