// The size of a chunk: GraphM's formula 1.
//
//   S_c × N + (S_c × N / S_G) × |V| × U_v + r ≤ C_LLC
//
// Each of the N cores works on one chunk of S_c bytes and on its share of the vertices' data. With
// r bytes for everything else this fits the last-level cache, so memory delivers a chunk once for
// all jobs. S_c is the largest such integer that is a multiple of an edge and of a cache line, and
// at least one such multiple.
#pragma once

#include <cstdint>
#include <string>

namespace graphlane::share {

inline constexpr uint64_t kCacheLineBytes = 64;

// The last-level cache of the machine's first processor, and the number of cores that share it.
struct LastLevelCache {
  uint64_t size_bytes = uint64_t{8} << 20;  // if sysfs does not say
  uint32_t core_count = 1;
};

// From sysfs. It describes the machine rather than this process's CPU set, because jobs with
// different sets must agree on the chunks.
LastLevelCache read_last_level_cache(const std::string& cpu = "/sys/devices/system/cpu/cpu0");

struct ChunkSizing {
  uint64_t cache_bytes = 0;     // C_LLC
  uint64_t reserved_bytes = 0;  // r
  uint32_t core_count = 1;      // N
  uint64_t graph_bytes = 0;     // S_G
  uint64_t vertex_count = 0;    // |V|
  uint64_t vertex_bytes = 0;    // U_v
  uint32_t record_bytes = 1;    // of an edge
};

uint64_t chunk_size_bytes(const ChunkSizing& sizing);

}  // namespace graphlane::share
