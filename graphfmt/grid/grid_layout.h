// GridLayout: which block an edge belongs to. Pure arithmetic.
//
// V vertices in P partitions: the first V mod P partitions have ⌈V/P⌉ vertices,
// the others ⌊V/P⌋.
//
//   V=10 P=4:   0 1 2 | 3 4 5 | 6 7 | 8 9
//                            split = 6
#pragma once

#include <cassert>
#include <cstdint>

#include "graphfmt/edge.h"

namespace graphlane::graphfmt {

// Divides by a constant with one multiplication: the sort does it twice an edge.
// Exact for dividend and divisor below 2^31: with m = ⌈2^63/d⌉ the error of
// x·m/2^63 is below x/2^63 · (d-1)/d, which is less than the 1/d to the next integer.
class Divider {
 public:
  explicit Divider(uint32_t divisor) : factor_(((uint64_t{1} << 63) + divisor - 1) / divisor) {}
  uint32_t operator()(uint32_t dividend) const {
    return static_cast<uint32_t>(static_cast<unsigned __int128>(dividend) * factor_ >> 63);
  }

 private:
  uint64_t factor_;
};

class GridLayout {
 public:
  GridLayout(uint64_t vertex_count, uint32_t partitions)
      : partitions_(partitions),
        large_count_(static_cast<uint32_t>(vertex_count % partitions)),
        small_size_(static_cast<uint32_t>(vertex_count / partitions)),
        split_(large_count_ * (small_size_ + 1)),
        by_large_(small_size_ + 1),
        by_small_(small_size_ == 0 ? 1 : small_size_) {
    assert(vertex_count <= kVertexCountMax && partitions > 0);
  }

  uint32_t partitions() const { return partitions_; }
  size_t block_count() const { return size_t{partitions_} * partitions_; }

  uint32_t partition_of(uint32_t vertex) const {
    return vertex < split_ ? by_large_(vertex) : by_small_(vertex - split_) + large_count_;
  }

  // In row-major order: i·P + j.
  template <class E>
  size_t block_of(const E& edge) const {
    return size_t{partition_of(edge.source)} * partitions_ + partition_of(edge.target);
  }

 private:
  uint32_t partitions_;
  uint32_t large_count_;  // partitions with one vertex more
  uint32_t small_size_;
  uint32_t split_;  // the first vertex of the smaller partitions
  Divider by_large_;
  Divider by_small_;
};

// `partitions` of 0: what build_grid() chooses. With more edges it never chooses fewer.
uint32_t choose_partitions(uint64_t vertex_count, uint64_t edge_count, uint32_t partitions);

}  // namespace graphlane::graphfmt
