// A run of sorted arcs, encoded: the unit that an external sort keeps in memory or in its spill
// file.
//
//   block     1024 arcs; its first key stands in the table
//     lengths   4 bits an arc: of the first vertex's difference 0, 1, 2 or 4 bytes, of the second's 1 to 4
//     numbers   the differences; where the first vertex changes, the second itself
//     weights   4 or 8 bytes each, if weighted
//
// A run lives only as long as the sort, so its encoding is no format. Bytes from a spill file are
// checked all the same.
#pragma once

#include <cstdint>
#include <vector>

#include "graphfmt/sort/arc.h"

namespace graphlane::graphfmt {

inline constexpr size_t kArcBlock = 1024;
// How far a decoder may read behind a block.
inline constexpr size_t kArcRunSlack = kArcBlock * 8 + 8;

struct ArcBlock {
  uint64_t first_key = 0;
  uint64_t offset = 0;  // in the run, in bytes
  uint32_t arc_count = 0;
};

// Blocks, and one for the end, which has no arcs.
using ArcRunTable = std::vector<ArcBlock>;

constexpr size_t arc_run_bytes_max(size_t arc_count, size_t weight_bytes) {
  return arc_count * (8 + weight_bytes) + (arc_count / kArcBlock + 1) * (kArcBlock / 2) +
         kArcRunSlack;
}

// Sorted arcs to bytes; `bytes` has room for arc_run_bytes_max(). The length without slack.
size_t encode_run(const Arc* arcs, size_t count, uint8_t* bytes, ArcRunTable& table);
size_t encode_run(const WeightedArc* arcs, size_t count, size_t weight_bytes, uint8_t* bytes,
                  ArcRunTable& table);

// Decodes a block with the bytes [bytes, end), and kArcRunSlack behind it may be read. False:
// damaged.
bool decode_block(const ArcBlock& block, const uint8_t* bytes, const uint8_t* end, Arc* arcs);
bool decode_block(const ArcBlock& block, size_t weight_bytes, const uint8_t* bytes,
                  const uint8_t* end, WeightedArc* arcs);

}  // namespace graphlane::graphfmt
