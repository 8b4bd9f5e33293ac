// build_stored_graph: what the builders of lists, dual and pages have in common.
//
//   read_edges ─▶ ArcSorter ─▶ write_side(kOut) ─▶ write_side(kIn), if directed ─▶ end() ─▶ header ─▶ rename
//
// The directory is built beside its name and renamed when it is complete (staging.h). The files do
// not depend on the number of threads, nor on the budget as far as the format's own choices do not.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graphfmt/codec/codec.h"
#include "graphfmt/edge_list.h"
#include "graphfmt/graph_header.h"
#include "graphfmt/list_sink.h"
#include "graphfmt/lists/lists.h"

namespace graphlane::graphfmt {

// The options that every format has; the fields are those of ListsOptions. Refers to the caller's.
struct StoredGraphOptions {
  const EdgeListOptions& input;
  const std::string& output;
  CodecKind codec;
  bool overwrite;
  size_t run_edges;
};

struct StoredGraphSummary {
  uint64_t vertex_count = 0;
  uint64_t edge_count = 0;
  uint64_t arc_count = 0;               // in one direction's lists
  uint64_t output_bytes = 0;            // of all files
  uint64_t spilled_bytes = 0;           // of the sort; 0: the graph fitted into the memory budget
  std::vector<std::string> notes = {};  // of the edge list
};

// The arcs of one direction's lists.
struct SideArcs {
  uint64_t all = 0;
  // Those with a neighbour that is not below the vertex: the edges, where each stands in both ends'
  // lists.
  uint64_t single = 0;
};

// The part of a build that differs by format. One thread calls it, in the order of the picture.
class StoredGraphFormat {
 public:
  // Gives the sorted lists of a direction to the sink.
  using Merge = std::function<Outcome<void>(ListSink&)>;

  // The header has its vertex count, codec, weights and direction. Sets the fields that only this
  // format has.
  virtual void begin(uint64_t input_edge_count, GraphHeader& header) = 0;
  // Writes a direction's files into `dir`, and names them in the header.
  virtual Outcome<SideArcs> write_side(Direction direction, const Merge& merge,
                                       const std::string& dir, GraphHeader& header) = 0;
  // Writes files that belong to both directions.
  virtual Outcome<void> end(const std::string& dir, GraphHeader& header) {
    (void)dir, (void)header;
    return {};
  }

 protected:
  ~StoredGraphFormat() = default;
};

Outcome<StoredGraphSummary> build_stored_graph(const StoredGraphOptions& options,
                                               StoredGraphFormat& format);

// A directory may be overwritten by a stored graph only if it is one or empty; EEXIST: another.
Outcome<void> may_become_stored_graph(const std::string& dir);

// Makes a new file of these bytes.
Outcome<void> write_new_file(const std::string& path, const void* data, size_t size_bytes);

}  // namespace graphlane::graphfmt
