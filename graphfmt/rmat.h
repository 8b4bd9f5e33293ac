// R-MAT: a generator of graphs with the skew of real ones (Chakrabarti, Zhan &
// Faloutsos, SDM 2004; the Kronecker generator of Graph500).
//
// An edge descends `scale` times into one quadrant of the adjacency matrix:
//
//                target 0   target 1
//   source 0   |    a     |    b     |     each level decides one bit of the
//   source 1   |    c     |  1-a-b-c |     source and one of the target
//
// Edge number e is a pure function of (seed, e): neither the number of threads
// nor of batches matters. Duplicates and self-loops stay in, as in Graph500.
#pragma once

#include <cstdint>

#include "graphfmt/edge.h"
#include "graphfmt/edge_list.h"

namespace graphlane::graphfmt {

inline constexpr unsigned kRmatScaleMax = 30;  // 31 would reach beyond kVertexMax

struct RmatOptions {
  unsigned scale = 16;  // 2^scale vertices
  uint64_t edges = 0;
  uint64_t seed = 1;
  double a = 0.57;
  double b = 0.19;
  double c = 0.19;
  bool scramble = false;  // permute the numbers, so that low ones are not the hubs
  uint64_t memory_budget_bytes = uint64_t{64} << 20;
  unsigned threads = 0;  // 0: one for each core we may use
};

// Edge `index` of the graph. Pure; for tests and for callers that need single edges.
Edge rmat_edge(const RmatOptions& options, uint64_t index);

// The whole stream, in order of the index. EINVAL: impossible options.
Outcome<EdgeListSummary> generate_rmat(const RmatOptions& options, EdgeSink& sink);

// Straight to a file, binary or text.
Outcome<EdgeListSummary> write_rmat(const RmatOptions& options, const EdgeListOutput& output);

}  // namespace graphlane::graphfmt
