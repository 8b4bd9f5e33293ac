// DualGeometry: the intervals of vertices of a graph of the format `dual`. All have the same width,
// but the last ones may have fewer vertices, or none.
//
//   V = 10, P = 4     0 1 2 | 3 4 5 | 6 7 8 | 9
#pragma once

#include <algorithm>
#include <cstdint>

namespace graphlane::graphfmt {

inline constexpr uint32_t kDualPartitionsMax = 512;

class DualGeometry {
 public:
  DualGeometry() = default;
  // `partitions`: at least 1.
  DualGeometry(uint64_t vertex_count, uint32_t partitions)
      : vertex_count_(vertex_count),
        partitions_(partitions),
        width_(std::max<uint64_t>(1, (vertex_count + partitions - 1) / partitions)) {}

  uint64_t vertex_count() const { return vertex_count_; }
  uint32_t partitions() const { return partitions_; }
  uint64_t block_count() const { return uint64_t{partitions_} * partitions_; }
  // Vertices of an interval, at most.
  uint64_t width() const { return width_; }

  uint32_t interval_of(uint64_t vertex) const { return static_cast<uint32_t>(vertex / width_); }
  // Both may be asked of partitions() too: the end of all.
  uint64_t first(uint64_t interval) const { return std::min(interval * width_, vertex_count_); }
  uint64_t size(uint64_t interval) const { return first(interval + 1) - first(interval); }

 private:
  uint64_t vertex_count_ = 0;
  uint32_t partitions_ = 1;
  uint64_t width_ = 1;
};

}  // namespace graphlane::graphfmt
