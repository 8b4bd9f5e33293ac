// Overlay: the updated chunks of a partition in one version of the graph, in one piece of sealed
// memory.
//
//   OverlayHeader | OverlayChunk, one each, by rising number | their bytes
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "iomgr/base/error.h"

namespace graphlane::share {

struct OverlayHeader {
  static constexpr uint32_t kMagic = 0x31564f47;  // "GOV1"
  uint32_t magic = kMagic;
  uint32_t chunk_count = 0;
};

struct OverlayChunk {
  uint32_t chunk = 0;
  uint32_t padding = 0;
  uint64_t offset = 0;  // from the overlay's first byte
  uint64_t length_bytes = 0;
};

// Chunk number to bytes, which are borrowed.
using ChangedChunks = std::map<uint32_t, std::span<const char>>;

std::string make_overlay(const ChangedChunks& chunks);

// EPROTO: malformed.
Outcome<ChangedChunks> parse_overlay(std::span<const char> overlay);

}  // namespace graphlane::share
