// Parallel sliding windows (Kyrola, Blelloch, Guestrin, OSDI 2012): a sweep
// over the vertices that reads every edge twice, with few and long reads.
//
//   for interval p:   shard p             whole: the edges into p ("memory shard")
//                     every other shard   its next window: the edges out of p
//                     update p's vertices, in order, through their edges' values
//                     write the values back where they were
//
// The calls are GraphChi's. The memory shard is read by parallel preads of 16 MiB
// through dup'ed descriptors, and a window by preads of 1 MiB from the end of the
// last one. A block of values takes open O_RDWR, pread, and later write() on the
// same descriptor, which must still be at position 0.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/engines/posix.h"
#include "tests/engines/shards.h"
#include "tests/engines/vertex_file.h"

namespace engines {

// Reads an .adj file vertex by vertex.
class AdjacencyReader {
 public:
  struct Position {
    size_t byte = 0;
    int64_t vertex = 0;
    size_t edge = 0;         // of the shard: the first of `vertex`
    size_t empty_count = 0;  // vertices from `vertex` on that still have no edges
  };

  AdjacencyReader(const std::string& path, VertexRange targets);

  void load_whole(int thread_count);
  const Position& position() const { return position_; }
  void seek(const Position& position) { position_ = position; }
  // Returns the targets of position().vertex, then moves on to the next vertex.
  std::span<const uint32_t> next();

 private:
  template <class T>
  T take();
  void need(size_t length);

  File file_;
  const VertexRange targets_range_;
  const size_t size_bytes_;
  Position position_;
  std::vector<char> buffer_;
  size_t buffer_begin_ = 0;  // file offset of buffer_[0]
  std::vector<uint32_t> targets_;
};

// The values on edges [begin, end) of a shard: all blocks that hold them.
class EdgeValues {
 public:
  EdgeValues() = default;
  EdgeValues(const ShardNames& names, int shard, size_t begin, size_t end, size_t edge_count);

  size_t block_count() const { return files_.size(); }
  void read_block(size_t index);
  void write_block(size_t index);
  uint32_t& operator[](size_t edge) { return values_[edge - first_edge_]; }

 private:
  std::span<uint32_t> block(size_t index);

  size_t first_edge_ = 0;
  std::vector<File> files_;
  std::vector<uint32_t> values_;
};

// An update reads and writes this: 4 bytes of the vertex and of each of its edges.
struct Vertex {
  int64_t id;
  uint32_t& value;
  Degrees degrees;
  std::vector<uint32_t*>& in;
  std::vector<uint32_t*>& out;
};

class SlidingWindows {
 public:
  SlidingWindows(const std::string& base, int shard_count, int thread_count);

  int64_t vertex_count() const { return vertex_count_; }
  void sweep(const std::function<void(const Vertex&)>& update);
  std::vector<uint32_t> vertex_values() const;

 private:
  // The edges of the current interval that lie in one shard.
  struct Window {
    std::vector<size_t> out_begin;  // of the interval's i-th vertex; and one more
    EdgeValues values;
  };
  // In-edges of the interval's i-th vertex: edges[begin[i] .. begin[i + 1]).
  struct InEdges {
    std::vector<size_t> begin;
    std::vector<uint32_t> edges;
  };

  void sweep_interval(int p, const std::function<void(const Vertex&)>& update);
  InEdges load_memory_shard(int p);
  void load_window(int p, int shard);
  void update_vertices(int p, const InEdges& in_edges,
                       const std::function<void(const Vertex&)>& update);
  void for_every_block(void (EdgeValues::*action)(size_t));

  const ShardNames names_;
  const int thread_count_;
  int64_t vertex_count_ = 0;
  std::vector<VertexRange> intervals_;
  std::vector<size_t> edge_counts_;  // of each shard
  File vertex_file_;
  File degree_file_;
  std::vector<AdjacencyReader> readers_;  // the position of each shard's window
  std::vector<Window> windows_;
};

}  // namespace engines
