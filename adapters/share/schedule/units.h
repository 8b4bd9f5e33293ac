// Units: what of a graph is loaded, given to jobs and kept by itself.
//
//   partition   |      0      |  1  |        2         |
//   unit        |  0  |  1  |2|  3  |  4  |  5  |  6   |     cut every `unit_bytes`
//
// A partition is one unit where the graph fits memory, or nobody knows its edges. Else it is cut: so
// that a few partitions that are read, unpacked and gone through at once do not take the memory of
// what could stay (a grid of 4 × 4 blocks has a sixteenth of the graph in each). Cuts lie between
// chunks. Jobs go through a partition's units one after the other, and their engines see one partition.
//
// Threads: what has been made is constant.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace graphlane::share {

inline constexpr uint64_t kUncut = UINT64_MAX;

class Units {
 public:
  Units() = default;
  // No partition has more than 2^16 of them, nor the graph more than its partitions and 2^16, if
  // `unit_bytes` is what unit_bytes_for() says. An empty partition has one.
  Units(std::span<const uint64_t> partition_bytes, uint64_t unit_bytes);

  uint32_t count() const { return static_cast<uint32_t>(bytes_.size()); }
  uint32_t partition_count() const { return static_cast<uint32_t>(first_.size() - 1); }

  // The units of a partition: [first_of, end_of).
  uint32_t first_of(uint32_t partition) const { return first_[partition]; }
  uint32_t end_of(uint32_t partition) const { return first_[partition + 1]; }
  uint32_t partition_of(uint32_t unit) const { return partition_[unit]; }

  // Whether it is the last one of its partition.
  bool is_last(uint32_t unit) const { return unit + 1 == end_of(partition_of(unit)); }

  uint64_t bytes_of(uint32_t unit) const { return bytes_[unit]; }
  const std::vector<uint64_t>& bytes() const { return bytes_; }
  // Where it begins in its partition.
  uint64_t offset_of(uint32_t unit) const {
    return uint64_t{unit - first_of(partition_of(unit))} * unit_bytes_;
  }
  // That which has byte `offset` of the partition; behind its end: the last one.
  uint32_t unit_at(uint32_t partition, uint64_t offset) const;

  uint64_t unit_bytes() const { return unit_bytes_; }

 private:
  uint64_t unit_bytes_ = kUncut;
  std::vector<uint32_t> first_{0};
  std::vector<uint32_t> partition_;
  std::vector<uint64_t> bytes_;
};

// How partitions are cut of a graph that has `graph_bytes` and does not fit: into so many bytes, which
// are one chunk, or as many as make a device's read worth it.
uint64_t unit_bytes_for(uint64_t chunk_bytes, uint64_t graph_bytes);

}  // namespace graphlane::share
