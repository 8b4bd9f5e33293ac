// How large a chunk is: GraphM's formula 1.
//
//   S_c × N + (S_c × N / S_G) × |V| × U_v + r ≤ C_LLC
//
// All N cores work on one chunk of S_c bytes each, and on the share of the vertices'
// data that goes with it; with r bytes for everything else this fits the last-level
// cache, so a chunk is fetched from memory once for all jobs. S_c is the largest
// such integer that is a multiple of an edge and of a cache line; at least one such
// multiple, however small the cache.
#pragma once

#include <cstdint>
#include <string>

namespace graphlane::share {

inline constexpr uint64_t kCacheLineBytes = 64;

// The last-level cache of the machine's first processor, and who shares it.
struct LastLevelCache {
  uint64_t size_bytes = uint64_t{8} << 20;  // where sysfs says nothing
  uint32_t core_count = 1;
};

// From sysfs. Of the machine, not of the processors that we may use: else two jobs
// would want different chunks of one graph.
LastLevelCache read_last_level_cache(const std::string& cpu = "/sys/devices/system/cpu/cpu0");

struct ChunkSizing {
  uint64_t cache_bytes = 0;         // C_LLC
  uint64_t reserved_bytes = 0;      // r
  uint32_t core_count = 1;          // N
  uint64_t graph_bytes = 0;         // S_G
  uint64_t vertex_count = 0;        // |V|
  uint64_t vertex_bytes = 0;        // U_v
  uint32_t record_bytes = 1;        // of an edge
};

uint64_t chunk_size_bytes(const ChunkSizing& sizing);

}  // namespace graphlane::share
