// Which vertices a partition has: the first `vertices` mod `partitions` ones have one more.
#ifndef GRAPHLANE_GRIDGRAPH_PARTITION_HPP
#define GRAPHLANE_GRIDGRAPH_PARTITION_HPP

#include <algorithm>
#include <utility>

#include "core/type.hpp"

inline std::pair<VertexId, VertexId> get_partition_range(VertexId vertices, int partitions,
                                                         int partition_id) {
  const VertexId size = vertices / partitions;
  const VertexId larger = vertices % partitions;
  const VertexId begin = partition_id * size + std::min<VertexId>(partition_id, larger);
  return std::make_pair(begin, begin + size + (partition_id < larger ? 1 : 0));
}

inline int get_partition_id(VertexId vertices, int partitions, VertexId vertex_id) {
  const VertexId size = vertices / partitions;
  const VertexId larger = vertices % partitions;
  const VertexId split = larger * (size + 1);  // the first vertex of the smaller partitions
  return vertex_id < split ? vertex_id / (size + 1) : larger + (vertex_id - split) / size;
}

#endif
