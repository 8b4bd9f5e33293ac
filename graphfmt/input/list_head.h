// ListHead: whether a list's first edge is none, but a head that counts what follows.
//
//   3 4        VERTICES EDGES, or EDGES VERTICES
//   3 3 4      ROWS COLUMNS ENTRIES, of a list with weights
//
// An edge can look like that, too, by chance. So a list is judged as a whole. Its beginning is looked
// at closely; of the rest, the number of edges and the largest vertex suffice.
//
// Threads: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graphfmt/edge.h"

namespace graphlane::graphfmt {

class ListHead {
 public:
  enum class Verdict {
    kEdge,
    kDoubtful,  // it may count, but the list is short, or the count is another
    kHead,
  };

  // `batch`: the first edges of the list.
  void look_at(const EdgeBatch& batch);
  // As look_at(), for edges as parse_names() writes them. `weighted`: they have weights of
  // `weight_type`.
  void look_at_names(const char* names, size_t names_bytes, bool weighted, WeightType weight_type);
  // The largest vertex of later edges.
  void add_later(uint32_t vertex_max);

  // `edge_count`: of the whole list, with the first edge.
  Verdict judge(uint64_t edge_count) const;
  // Whether the list begins with one or two counts of 64 bits, of which each looks like an edge to 0.
  bool is_wide_head(uint64_t edge_count) const;
  // "4 5".
  std::string text() const;

 private:
  // Of the edges but the first, as far as they were looked at.
  struct Others {
    uint64_t edge_count = 0;
    uint64_t vertex_count = 0;  // different ones
    uint64_t max = 0, min = UINT64_MAX;
  };

  bool fits_vertices(uint64_t number, uint64_t other_edges) const;
  bool counts_vertices(uint64_t number, uint64_t other_edges) const;
  bool counts_entries(uint64_t other_edges) const;

  std::optional<uint64_t> source_, target_;  // of the first edge; none: a word
  std::optional<Edge> second_;               // of numbers
  std::optional<double> weight_;
  Others others_;
};

}  // namespace graphlane::graphfmt
