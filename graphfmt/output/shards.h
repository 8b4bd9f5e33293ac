// GraphChi's shards, as its own sharder writes them for edge values of 4 bytes; FORMAT.md has the
// files.
//
//   edges ─▶ sorted by target ─▶ cut into intervals of about equal in-edges ─▶ each shard sorted by source
//
// The files lie in a directory and begin with its name, so that GraphChi's programs are given
// OUT/NAME:
//
//   graphlane convert --to shards -p 4 list.txt graphs/web        pagerank file graphs/web/web
//
// Self-loops are left out, as the sharder leaves them out. The degrees are kept in memory: 8 bytes
// a vertex.
#pragma once

#include <string>
#include <vector>

#include "graphfmt/edge_list.h"

namespace graphlane::graphfmt {

inline constexpr uint32_t kShardsMax = 2048;

struct ShardsOptions {
  EdgeListOptions list;    // the input; its memory budget is for all work; weights are float32
  std::string output;      // a directory
  std::string name;        // the begin of the files' names
  uint32_t shards = 0;     // 0: GraphChi's own choice with 1 GiB
  bool overwrite = false;  // replace existing shards (never anything else)
};

struct ShardsSummary {
  uint64_t vertex_count = 0;
  uint64_t edge_count = 0;  // without self-loops
  uint64_t self_loop_count = 0;
  uint32_t shards = 0;
  std::vector<std::string> notes = {};
};

Outcome<ShardsSummary> build_shards(const ShardsOptions& options);

// A directory may be overwritten by shards only if it holds shards or is empty; EEXIST: another.
Outcome<void> may_become_shards(const std::string& dir);

// The shards in a directory. EINVAL: there are none, or several numbers of them.
struct ShardsFound {
  std::string base;  // "DIR/NAME"
  uint32_t shards = 0;
};
Outcome<ShardsFound> find_shards(const std::string& dir);

// Names of files.
std::string shard_adjacency_path(const std::string& base, uint32_t shard, uint32_t shards);
std::string shard_values_path(const std::string& base, uint32_t shard, uint32_t shards);
std::string shard_block_directory(const std::string& values_path);
// of edge values, before they are compressed
inline constexpr size_t kShardBlockBytes = size_t{1} << 20;

}  // namespace graphlane::graphfmt
