// Strips: ranges of an interval's vertices. Their lists are put together from all blocks of the
// interval, of both sides.
//
//   block (own, 0)  | a | b |  c  |      strip a: the lists of the same vertices in each block; the worker that has taken
//   block (own, 1)  | a | b |  c  |      the last of them gives each vertex the values of all of its neighbours
//
// Threads: take() by any worker.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "adapters/hybrid/block_sweep.h"

namespace graphlane::hybrid {

class Strips {
 public:
  // `own`: the interval. The graph outlives it.
  Strips(const DualGraph& graph, uint32_t own);

  // Their indexes have to be in memory for add_to().
  std::span<const BlockId> blocks() const { return blocks_; }
  // Adds chunks of the next strips, at least one: until their lists have about so many neighbours
  // together.
  void add_to(SweepPlan& plan, uint64_t neighbours_max);
  bool has_more() const { return next_ < graph_.geometry().size(own_); }

  // `values`: of the vertices of the chunk's other interval. give(vertex, of_neighbours): from the
  // interval's begin on.
  using Give = std::function<void(uint32_t vertex, std::span<const uint32_t> of_neighbours)>;
  void take(const SweepChunk& chunk, const ChunkLists& lists, const uint32_t* values,
            const Give& give);

 private:
  struct Part {
    std::vector<uint32_t> vertices;
    std::vector<uint32_t> starts;
    std::vector<uint32_t> values;  // of neighbours
  };
  struct Strip {
    uint64_t first = 0;  // vertices [first, end) of the interval
    uint64_t end = 0;
    std::vector<Part> parts;  // by the tags of its chunks
    std::atomic<uint32_t> left{0};
  };
  void give_all(Strip& strip, const Give& give) const;

  const DualGraph& graph_;
  const uint32_t own_;
  std::vector<BlockId> blocks_;
  std::vector<std::unique_ptr<Strip>> strips_;
  uint64_t next_ = 0;  // the begin of the next strip
};

}  // namespace graphlane::hybrid
