// Shards: a graph as GraphChi keeps it. Shard p of S holds the edges that end
// in interval p of the vertices, sorted by source:
//
//   interval      0         1         2         targets
//   sources 0  [ 0 -> 0 ][ 0 -> 1 ][ 0 -> 2 ]   <- rows: the window of interval 0
//           1  [ 1 -> 0 ][ 1 -> 1 ][ 1 -> 2 ]      in every shard is contiguous
//           2  [ 2 -> 0 ][ 2 -> 1 ][ 2 -> 2 ]
//               shard 0   shard 1   shard 2
//
//   BASE.numvertices                       text: V
//   BASE.S.intervals                       text: the last vertex of each interval
//   BASE.p_S.adj                           the edges of shard p; never rewritten
//   BASE.edata.p_S.size                    text: bytes of the edge values
//   BASE.edata.p_S_blockdir_1048576/N      a 4-byte value an edge, in blocks of
//                                          1 MiB that every iteration rewrites
//   BASE_degs.bin                          in- and out-degree (int32) of each vertex
//   BASE.4B.vout                           a 4-byte value a vertex
//
// An .adj file lists the sources in order, each as
//   count (1 byte; 255: the count follows as uint32)  targets (uint32 each)
// and a source without edges as 0 and one byte with how many more such follow.
// Hence nothing in it is aligned.
#pragma once

#include <cstdint>
#include <string>

namespace engines {

inline constexpr size_t kBlockBytes = 1 << 20;
inline constexpr size_t kValuesPerBlock = kBlockBytes / sizeof(uint32_t);
inline constexpr unsigned kLongCount = 255;

struct Degrees {
  int32_t in;
  int32_t out;
};

struct ShardNames {
  std::string base;
  int shard_count;

  std::string adjacency(int p) const { return base + part(p) + ".adj"; }
  std::string values_size(int p) const { return base + ".edata" + part(p) + ".size"; }
  std::string block_directory(int p) const {
    return base + ".edata" + part(p) + "_blockdir_" + std::to_string(kBlockBytes);
  }
  std::string block(int p, size_t index) const {
    return block_directory(p) + "/" + std::to_string(index);
  }
  std::string intervals() const { return base + "." + std::to_string(shard_count) + ".intervals"; }
  std::string vertex_count() const { return base + ".numvertices"; }
  std::string degrees() const { return base + "_degs.bin"; }
  std::string vertex_values() const { return base + ".4B.vout"; }

 private:
  std::string part(int p) const {
    return "." + std::to_string(p) + "_" + std::to_string(shard_count);
  }
};

// Makes the shards of a list of int32 pairs. The whole list is held in memory.
void make_shards(const std::string& edge_file, const std::string& base, int shard_count);

}  // namespace engines
