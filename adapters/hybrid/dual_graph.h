// DualGraph: a graph of the format `dual` that is open for computing. Lists are read through a page
// cache, the indexes of blocks are kept in memory as long as they fit into their share of it.
//
// Threads: index() and load() one at a time, while no sweep runs; the rest is any thread's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapters/graph/worker_pool.h"
#include "graphfmt/dual/dual.h"
#include "iomgr/base/error.h"
#include "iomgr/read/paged_files.h"

namespace graphlane::hybrid {

// The index of one block, in memory.
struct BlockIndex {
  graphfmt::DualSide side = graphfmt::DualSide::kOut;
  uint32_t own = 0;
  uint32_t other = 0;
  graphfmt::Buffer bytes;
  graphfmt::ListIndex index;
};
using BlockIndexPtr = std::shared_ptr<const BlockIndex>;

struct BlockId {
  graphfmt::DualSide side = graphfmt::DualSide::kOut;
  uint32_t own = 0;
  uint32_t other = 0;
};

class DualGraph {
 public:
  struct Options {
    uint64_t memory_bytes = 64 << 20;  // of pages and indexes together
    bool in_memory = false;            // enough for all files, once they are read
    bool weights = false;              // wanted: those of a graph that has some
  };
  static constexpr uint64_t kCacheBytesMin = 2 << 20;

  static Outcome<std::unique_ptr<DualGraph>> open(const std::string& path, const Options& options);
  ~DualGraph();

  const std::string& path() const { return dual_->path(); }
  const graphfmt::Dual& dual() const { return *dual_; }
  const graphfmt::DualGeometry& geometry() const { return dual_->geometry(); }
  uint64_t vertex_count() const { return geometry().vertex_count(); }
  bool is_directed() const { return dual_->is_directed(); }
  // Whether there are weights, and they were wanted.
  bool has_weights() const { return sides_[0].weights != nullptr; }

  graphfmt::DualSide own_side(graphfmt::DualSide side) const {
    return is_directed() ? side : graphfmt::DualSide::kOut;
  }
  const OpenPagedFile& blocks(graphfmt::DualSide side) const { return *this->side(side).blocks; }
  const OpenPagedFile& weights(graphfmt::DualSide side) const { return *this->side(side).weights; }
  PageReader& pages() const { return *pages_; }
  uint64_t cache_bytes() const { return cache_bytes_; }
  // The pieces that a sweep back reads forwards. A sweep may lose one piece of the cache.
  uint64_t segment_bytes() const { return std::min<uint64_t>(cache_bytes_ / 8, 8 << 20); }
  PagedFiles::Moved moved() const { return files_.moved(); }

  // nullptr: a block without arcs, or its index is not in memory.
  BlockIndexPtr index(const BlockId& block) const { return indexes_[slot(block)].index; }
  bool has_index(const BlockId& block) const {
    return index(block) != nullptr ||
           dual_->block(block.side, block.own, block.other).arc_count == 0;
  }
  // Whether all indexes together fit into their share of memory.
  bool keeps_indexes() const { return keeps_indexes_; }
  // Reads those that are not in memory, by all workers. Others may go for them.
  Outcome<void> load(std::span<const BlockId> blocks, WorkerPool& pool);

 private:
  class Checker;
  struct Side {
    const OpenPagedFile* blocks = nullptr;
    const OpenPagedFile* weights = nullptr;  // nullptr: none, or not wanted
  };
  struct Slot {
    BlockIndexPtr index;
    uint64_t used_at = 0;
  };

  DualGraph() = default;
  const Side& side(graphfmt::DualSide side) const {
    return sides_[own_side(side) == graphfmt::DualSide::kIn ? 1 : 0];
  }
  size_t slot(const BlockId& block) const {
    const uint64_t partitions = geometry().partitions();
    const uint64_t in_side = uint64_t{block.own} * partitions + block.other;
    return own_side(block.side) == graphfmt::DualSide::kIn ? geometry().block_count() + in_side
                                                           : in_side;
  }
  Outcome<const OpenPagedFile*> open_file(graphfmt::DualSide side, graphfmt::DualPart part);
  Outcome<BlockIndexPtr> read_index(const BlockId& block) const;
  void make_room();

  std::unique_ptr<graphfmt::Dual> dual_;
  std::vector<std::unique_ptr<Checker>> checkers_;
  uint64_t cache_bytes_ = 0;
  uint64_t index_bytes_max_ = 0;
  bool keeps_indexes_ = false;
  std::unique_ptr<PageReader> pages_;
  PagedFiles files_;
  Side sides_[2];
  std::vector<Slot> indexes_;
  uint64_t index_bytes_ = 0;
  uint64_t loads_ = 0;
};

}  // namespace graphlane::hybrid
