// ListDecoder: the lists of a chunk from its bytes.
//
// Threads: one.
#pragma once

#include <vector>

#include "adapters/hybrid/block_sweep.h"

namespace graphlane::hybrid {

// Bytes behind a chunk's that decoders may read.
inline constexpr size_t kDecodeSlackBytes = 64;

// The arcs of a side from the first list of a chunk to the last.
struct ArcRange {
  uint64_t first = 0;
  uint64_t count = 0;
};
ArcRange arcs_of(const DualGraph& graph, const SweepChunk& chunk);

class ListDecoder {
 public:
  explicit ListDecoder(const DualGraph& graph) : graph_(graph) {}

  // `bytes`: of the chunk's lists; `weights`: the codes of arcs_of(chunk), or nullptr; of both
  // kDecodeSlackBytes more may be read. What is returned is there until the next call. EIO: damaged.
  Outcome<ChunkLists> decode(const SweepChunk& chunk, const uint8_t* bytes, const uint8_t* weights);

 private:
  Outcome<void> decode_range(const SweepChunk& chunk, const uint8_t* bytes);
  Outcome<void> decode_items(const SweepChunk& chunk, const uint8_t* bytes);
  Outcome<void> decode_items_of_groups(const SweepChunk& chunk, const uint8_t* bytes);
  Outcome<void> decode_weights(const SweepChunk& chunk, const uint8_t* codes);
  Error damaged(const SweepChunk& chunk, uint64_t offset, uint32_t vertex) const;

  const DualGraph& graph_;
  std::vector<uint32_t> vertices_;
  std::vector<uint32_t> starts_;
  std::vector<uint64_t> first_arcs_;  // of items' lists, in their block; only if weights are wanted
  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> degrees_;
  std::vector<uint32_t> neighbours_;
  std::vector<double> weights_;
  std::vector<uint32_t> group_vertices_;
  std::vector<uint32_t> group_starts_;
  std::vector<uint32_t> group_neighbours_;
};

}  // namespace graphlane::hybrid
