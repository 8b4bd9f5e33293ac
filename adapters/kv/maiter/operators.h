// Operators: what a delta-accumulative algorithm is made of (Maiter: v ← v ⊕ Δ, Δ_u ← Δ_u ⊕ g(Δ)
// along each arc).
//
// A sum's ⊕ is +; a minimum's is min. Each operator says what a vertex begins with and what it
// sends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "graphfmt/lists/lists.h"

namespace graphlane::maiter {

using VertexId = uint32_t;
inline constexpr double kNothingYet = std::numeric_limits<double>::infinity();

// Where deltas go: along out-arcs, or along all arcs.
enum class Along : uint8_t { kOut, kBoth };

// PageRank: each vertex begins with (1 - d) / n. Personalised: the sources alone, with (1 - d)
// shared among them.
struct PageRank {
  static constexpr bool kIsSum = true;
  static constexpr Along kAlong = Along::kOut;
  static constexpr bool kHasWeights = false;

  double damping = 0.85;
  uint64_t vertex_count = 0;
  std::vector<VertexId> sources = {};  // ascending; none: all vertices

  double first_delta(VertexId v) const {
    if (sources.empty()) return (1 - damping) / static_cast<double>(vertex_count);
    return std::binary_search(sources.begin(), sources.end(), v)
               ? (1 - damping) / static_cast<double>(sources.size())
               : 0;
  }
  double send(double delta, size_t degree, double) const {
    return damping * delta / static_cast<double>(degree);
  }
};

// Katz: each vertex begins with 1 and sends α of what it gets.
struct Katz {
  static constexpr bool kIsSum = true;
  static constexpr Along kAlong = Along::kOut;
  static constexpr bool kHasWeights = false;

  double alpha = 0;
  double first_delta(VertexId) const { return 1; }
  double send(double delta, size_t, double) const { return alpha * delta; }
};

// Connected components: the lowest vertex of each.
struct Components {
  static constexpr bool kIsSum = false;
  static constexpr Along kAlong = Along::kBoth;
  static constexpr bool kHasWeights = false;

  double first_delta(VertexId v) const { return v; }
  double send(double delta, size_t, double) const { return delta; }
};

// Shortest paths from one vertex.
struct ShortestPaths {
  static constexpr bool kIsSum = false;
  static constexpr Along kAlong = Along::kOut;
  static constexpr bool kHasWeights = true;

  VertexId source = 0;
  double first_delta(VertexId v) const { return v == source ? 0 : kNothingYet; }
  double send(double delta, size_t, double weight) const { return delta + weight; }
};

}  // namespace graphlane::maiter
