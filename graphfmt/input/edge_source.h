// The parts of read_edges(): a reader for each kind of input. Text and binary lists go through an
// assembly line (line.h); its item is a piece of the file.
//
//   ByteSource ─▶ sniff ─▶ TextPlan ─▶ read_text ─┐                  ┌▶ MirrorSink ─▶ SimpleSink ─▶ the user's sink
//                      └─▶ layout ──▶ read_binary ┼─ numbers ────────┤
//                      └─▶ read_metis ────────────┤                  │
//   a directory ─▶ read_graph_directory ──────────┘─ names ─▶ Renumberer
#pragma once

#include "graphfmt/edge_list.h"
#include "graphfmt/input/byte_source.h"
#include "graphfmt/input/sniff.h"
#include "graphfmt/input/text_plan.h"

namespace graphlane::graphfmt {

// The target of edges between words, as parse_names() writes them. One call at a
// time, in the order of the file.
class NameSink {
 public:
  virtual ~NameSink() = default;
  virtual Outcome<void> take_names(const char* names, size_t names_bytes, size_t edge_count) = 0;
};

// To one of the two.
struct EdgeTarget {
  EdgeSink* numbers = nullptr;
  NameSink* names = nullptr;
};

// A reader's summary. Notes: what the user should know.
using ReadResult = Outcome<EdgeListSummary>;

ReadResult read_text(ByteSource& source, const TextPlan& plan, const EdgeListOptions& options,
                     const EdgeTarget& target);
ReadResult read_binary(ByteSource& source, const EdgeListOptions& options,
                       const EdgeTarget& target);
// Every edge is there both ways already.
ReadResult read_metis(ByteSource& source, const EdgeListOptions& options, const EdgeTarget& target);

// A grid, CSR, GraphChi's shards or lists; EISDIR: none of them.
ReadResult read_graph_directory(const EdgeListOptions& options, const EdgeTarget& target);

}  // namespace graphlane::graphfmt
