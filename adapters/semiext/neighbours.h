// A vertex's neighbours in the graph as an undirected one without loops and duplicates.
#pragma once

#include <algorithm>
#include <vector>

#include "adapters/semiext/list_loader.h"

namespace graphlane::semiext {

struct Neighbour {
  VertexId vertex;
  uint32_t arcs;  // 1; 2: in both directions
};

// Makes them from a list of both sides; ascending. In an undirected graph each edge is two arcs.
inline void merge_neighbours(VertexId v, const ListView& list, std::vector<Neighbour>& neighbours) {
  neighbours.clear();
  const std::span<const VertexId> out = list.neighbours;
  const std::span<const VertexId> in = list.in_neighbours;
  const bool is_undirected = list.side != EdgeSide::kBoth;
  size_t i = 0, j = 0;
  while (i < out.size() || j < in.size()) {
    const VertexId u = j == in.size() || (i < out.size() && out[i] <= in[j]) ? out[i] : in[j];
    const size_t i_before = i, j_before = j;
    while (i < out.size() && out[i] == u) ++i;
    while (j < in.size() && in[j] == u) ++j;
    if (u == v) continue;
    const uint32_t arcs = is_undirected ? 2 : (i > i_before) + (j > j_before);
    neighbours.push_back({u, arcs});
  }
}

}  // namespace graphlane::semiext
