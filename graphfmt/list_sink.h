// ListSink: where adjacency lists go, sorted: from an ArcSorter, or from a stored graph
// (lists_read.h).
//
//                    any thread         one at a time,       any thread
//                                       by vertex
//   source ──batch──▶ prepare(batch) ──▶ take(batch) ──────▶ settle(batch)
//                     encode its lists    give them places     write them
//
// It is for lists what EdgeSink (edge.h) is for edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphfmt/buffer.h"
#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

// Whole lists of ascending vertices.
struct ListBatch {
  std::vector<uint32_t> vertices;    // those with a list
  std::vector<size_t> starts;        // of their lists in `neighbours`; and the end
  std::vector<uint32_t> neighbours;  // ascending within a list
  std::vector<uint8_t> weights;      // weight_bytes for each neighbour, or empty
  // Scratch of the sink, from prepare() to take() and from take() to settle().
  Buffer encoded;
  size_t encoded_bytes = 0;
  std::vector<uint64_t> lengths;
  uint64_t offset = 0;
  uint64_t weights_offset = 0;
  uint64_t weights_bytes = 0;
  uint64_t tally = 0;

  std::span<const uint32_t> list(size_t index) const {
    return {neighbours.data() + starts[index], starts[index + 1] - starts[index]};
  }
};

// An error of any step ends the merge.
class ListSink {
 public:
  virtual ~ListSink() = default;
  virtual Outcome<void> prepare(ListBatch&) { return {}; }
  virtual Outcome<void> take(ListBatch& batch) = 0;
  virtual Outcome<void> settle(ListBatch&) { return {}; }
};

}  // namespace graphlane::graphfmt
