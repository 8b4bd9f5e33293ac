// The vertices, or edges, of a partition: the first `vertices` mod `partitions` partitions have one more.
#ifndef GRAPHLANE_GRIDGRAPH_PARTITION_HPP
#define GRAPHLANE_GRIDGRAPH_PARTITION_HPP

#include <stddef.h>

#include <algorithm>
#include <utility>

inline std::pair<size_t, size_t> get_partition_range(size_t vertices, size_t partitions,
                                                     size_t partition_id) {
  const size_t size = vertices / partitions;
  const size_t larger = vertices % partitions;
  const size_t begin = partition_id * size + std::min(partition_id, larger);
  return std::make_pair(begin, begin + size + (partition_id < larger ? 1 : 0));
}

inline size_t get_partition_id(size_t vertices, size_t partitions, size_t vertex_id) {
  const size_t size = vertices / partitions;
  const size_t larger = vertices % partitions;
  const size_t split = larger * (size + 1);  // the first vertex of the smaller partitions
  return vertex_id < split ? vertex_id / (size + 1) : larger + (vertex_id - split) / size;
}

#endif
