// Units: the pieces in which a graph is loaded, given to jobs and kept.
//
//   partition   |      0      |  1  |        2         |
//   unit        |  0  |  1  |2|  3  |  4  |  5  |  6   |     cut every `unit_bytes`
//
// A partition is one unit if the graph fits memory, or if its record format is unknown. Else it is
// cut between chunks. Without a cut, the few partitions that are read, unpacked and processed at
// once would take most of the memory: in a grid of 4 × 4 blocks each is a sixteenth of the graph.
// Jobs go through a partition's units in order, and their engines see one partition.
//
// Threads: immutable once made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace graphlane::share {

inline constexpr uint64_t kUncut = UINT64_MAX;

class Units {
 public:
  Units() = default;
  // If unit_bytes_for() gave `unit_bytes`, a partition has at most 2^16 units, and the graph at
  // most its number of partitions plus 2^16. An empty partition has one unit.
  Units(std::span<const uint64_t> partition_bytes, uint64_t unit_bytes);

  uint32_t count() const { return static_cast<uint32_t>(bytes_.size()); }
  uint32_t partition_count() const { return static_cast<uint32_t>(first_.size() - 1); }

  // The units of a partition: [first_of, end_of).
  uint32_t first_of(uint32_t partition) const { return first_[partition]; }
  uint32_t end_of(uint32_t partition) const { return first_[partition + 1]; }
  uint32_t partition_of(uint32_t unit) const { return partition_[unit]; }

  // Whether it is the partition's last unit.
  bool is_last(uint32_t unit) const { return unit + 1 == end_of(partition_of(unit)); }

  uint64_t bytes_of(uint32_t unit) const { return bytes_[unit]; }
  const std::vector<uint64_t>& bytes() const { return bytes_; }
  // Its first byte in the partition.
  uint64_t offset_of(uint32_t unit) const {
    return uint64_t{unit - first_of(partition_of(unit))} * unit_bytes_;
  }
  // The unit that contains byte `offset` of the partition; the last one for an offset behind its
  // end.
  uint32_t unit_at(uint32_t partition, uint64_t offset) const;

  uint64_t unit_bytes() const { return unit_bytes_; }

 private:
  uint64_t unit_bytes_ = kUncut;
  std::vector<uint32_t> first_{0};
  std::vector<uint32_t> partition_;
  std::vector<uint64_t> bytes_;
};

// The unit size for a graph of `graph_bytes` that does not fit memory: one chunk, or as many chunks
// as make a device's read worthwhile.
uint64_t unit_bytes_for(uint64_t chunk_bytes, uint64_t graph_bytes);

}  // namespace graphlane::share
