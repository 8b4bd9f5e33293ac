// BlockSweep: lists of blocks are read, by the lanes and ahead of the computation, decoded, and
// given to a function, chunk by chunk, on all workers.
//
//   plan: chunks ─▶ a worker takes the next, asks for its pages (PageQueue)
//                   ─▶ it is there: copied into the chunk's own memory
//                   ─▶ its turn has come: decoded, given to the function
//
// A chunk is a range of bytes of one block: all lists of a range of vertices, or some lists that
// lie on the same or adjacent pages, or so near that a disk would not skip what is between.
//
// Turns: chunks of a group go step by step: no chunk of a step begins before all of the steps
// before are done. Those of one step, and of different groups, run at the same time. So what has
// one group for each interval of targets, and a step for each block, needs no atomics, and adds
// numbers in one order whatever the threads.
//
// Threads: run() by the thread of the pool.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "adapters/graph/worker_pool.h"
#include "adapters/hybrid/dual_graph.h"

namespace graphlane::hybrid {

// A list that a chunk gives.
struct SweepItem {
  uint64_t offset = 0;  // in the block's lists
  uint32_t vertex = 0;  // in its interval
  uint32_t length_bytes = 0;
};

struct SweepChunk {
  BlockIndexPtr index;
  std::span<const SweepItem> items = {};  // empty: all lists of the vertices [first, end)
  uint64_t first = 0;
  uint64_t end = 0;
  ByteRange lists = {};  // in the block's lists
  uint32_t group = 0;
  uint32_t step = 0;
  uint32_t tag = 0;    // the caller's
  uint32_t strip = 0;  // likewise
};

// Cannot be copied: the chunks of a copy would refer to the items of the other plan.
struct SweepPlan {
  SweepPlan() = default;
  SweepPlan(SweepPlan&&) = default;
  SweepPlan& operator=(SweepPlan&&) = default;

  std::vector<SweepChunk> chunks;             // steps of a group ascend
  std::vector<std::vector<SweepItem>> items;  // to which chunks refer

  void clear() {
    chunks.clear();
    items.clear();
  }
  // Chunks for all lists of the block's vertices [first, end), each of about kChunkBytes. They take
  // the group and step of `like`, and its tag.
  void add_range(const BlockIndexPtr& index, uint64_t first, uint64_t end, const SweepChunk& like);
  // Chunks for items that belong to the block and ascend. Gaps of at most `gap_bytes` between them
  // are read, too.
  void add_items(const DualGraph& graph, const BlockIndexPtr& index, std::vector<SweepItem> chosen,
                 uint64_t gap_bytes, const SweepChunk& like);
  void append(SweepPlan&& other);
  // Reverses the order of chunks from `first_chunk` on, but not within segments of up to
  // `segment_bytes` of a block: disks are slow backwards.
  void reverse(size_t first_chunk, uint64_t segment_bytes);
};

// The lists of a chunk: that of vertices[i] is neighbours[starts[i]] … neighbours[starts[i + 1] -
// 1].
struct ChunkLists {
  std::span<const uint32_t> vertices;  // in their interval
  std::span<const uint32_t> starts;
  std::span<const uint32_t> neighbours;  // in theirs
  std::span<const double> weights;       // one for each neighbour; empty: none
  std::span<const uint32_t> list(size_t i) const {
    return neighbours.subspan(starts[i], starts[i + 1] - starts[i]);
  }
  double weight(size_t arc) const { return weights.empty() ? 1.0 : weights[arc]; }
};

struct SweepStats {
  uint64_t chunks = 0;
  uint64_t lists = 0;
  uint64_t arcs = 0;
};

class BlockSweep {
 public:
  static constexpr uint64_t kChunkBytes = 128 << 10;
  static constexpr uint64_t kChunkArcs = 512 << 10;  // about, of a block with shorter codes
  using Body = std::function<Outcome<void>(unsigned worker, const SweepChunk& chunk,
                                           const ChunkLists& lists)>;

  BlockSweep(const DualGraph& graph, WorkerPool& pool);
  ~BlockSweep();

  // The error names the file, or is the function's; EINTR: interrupted.
  Outcome<void> run(const SweepPlan& plan, const Body& body);

  const SweepStats& stats() const { return stats_; }

 private:
  class Worker;
  class Turns;

  const DualGraph& graph_;
  WorkerPool& pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
  SweepStats stats_;
};

}  // namespace graphlane::hybrid
