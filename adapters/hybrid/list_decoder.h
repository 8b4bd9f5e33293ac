// ListDecoder: the lists of a chunk from its bytes.
//
// Threads: one.
#pragma once

#include <vector>

#include "adapters/hybrid/block_sweep.h"

namespace graphlane::hybrid {

// Bytes behind a chunk's that decoders may read.
inline constexpr size_t kDecodeSlackBytes = 64;

class ListDecoder {
 public:
  explicit ListDecoder(const DualGraph& graph) : graph_(graph) {}

  // `bytes`: the chunk's, and kDecodeSlackBytes more that may be read; `weights`: those of its arcs
  // from the first list to the last, or nullptr. What is returned is there until the next call.
  // EIO: damaged.
  Outcome<ChunkLists> decode(const SweepPlan& plan, const SweepChunk& chunk, const uint8_t* bytes,
                             const uint8_t* weights);

 private:
  Outcome<void> decode_range(const SweepChunk& chunk, const uint8_t* bytes);
  Outcome<void> decode_items(const SweepPlan& plan, const SweepChunk& chunk, const uint8_t* bytes);
  Outcome<void> decode_items_of_groups(const SweepPlan& plan, const SweepChunk& chunk,
                                       const uint8_t* bytes);
  Error damaged(const SweepChunk& chunk, uint64_t offset, uint32_t vertex) const;

  const DualGraph& graph_;
  std::vector<uint32_t> vertices_;
  std::vector<uint32_t> starts_;
  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> degrees_;
  std::vector<uint32_t> neighbours_;
  std::vector<double> weights_;
  std::vector<uint32_t> group_vertices_;
  std::vector<uint32_t> group_starts_;
  std::vector<uint32_t> group_neighbours_;
};

}  // namespace graphlane::hybrid
