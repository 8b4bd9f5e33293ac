// Grid: a directory made by GridGraph's preprocessing, streamed as GridGraph streams it.
//
//              target partition
//               0   1   2   3        column   blocks (0,0) (1,0) (2,0) ... : column by column
//   source  0 | . | . | . | . |      row      blocks (0,0) (0,1) (0,2) ... : row by row
//           1 | . | . | . | . |      column_offset, row_offset: where each begins (int64)
//           2 | . | . | . | . |      block-i-j   stat'ed for their sizes, never read
//
// A sweep opens the file anew, and queues the active blocks in ascending order as
// preads of 24 MiB (the last of a block rounded up to whole pages). N new threads
// pop them from the one queue, each into its own aligned buffer.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/engines/posix.h"
#include "tests/engines/vertex_file.h"

namespace engines {

struct Edge {
  int32_t source;
  int32_t target;
};

// The edges of one pread. Weights, where the grid has them, are stepped over.
struct EdgeChunk {
  const char* begin;
  const char* end;
  size_t edge_bytes;
  VertexRange window;  // edges of other sources belong to another pass
};

enum class DirectIo { kAuto, kAlways, kNever };

struct GridOptions {
  int64_t memory_bytes;
  int thread_count;
  DirectIo direct;
};

struct Sweep {
  // Whether the sweep reads block (i, j).
  std::function<bool(int, int)> wants = [](int, int) { return true; };
  // Vertex data that a pass over the columns needs at a time. With less memory there are several
  // passes, one for each window of source partitions.
  int64_t vertex_bytes = 0;
  std::function<void(VertexRange)> before_window = [](VertexRange) {};
  std::function<void(VertexRange)> after_window = [](VertexRange) {};
};

class Grid {
 public:
  Grid(std::string directory, const GridOptions& options);

  const std::string& directory() const { return directory_; }
  int64_t vertex_count() const { return vertex_count_; }
  int64_t edge_count() const { return edge_count_; }
  int partition_count() const { return partition_count_; }
  int64_t bytes_streamed() const { return bytes_streamed_; }
  VertexRange partition(int index) const;

  // Calls process(edge) for every edge of the blocks that the sweep wants, from several threads.
  template <class Process>
  void stream_rows(const Sweep& sweep, Process process) {
    stream(File(directory_ + "/row", read_flags(sweep)), row_offset_, false, sweep, each(process));
  }
  template <class Process>
  void stream_columns(const Sweep& sweep, Process process) {
    stream(File(directory_ + "/column", read_flags(sweep)), column_offset_, true, sweep,
           each(process));
  }

  // Calls process(v) for every vertex. Where vertex data exceeds the memory, `load` and `save` run
  // before and after each window.
  void stream_vertices(int64_t vertex_bytes, const std::function<void(int64_t)>& process,
                       const std::function<void(VertexRange)>& load,
                       const std::function<void()>& save) const;

 private:
  using Consume = std::function<void(const EdgeChunk&)>;
  struct Free {
    void operator()(char* buffer) const { std::free(buffer); }
  };
  using Buffer = std::unique_ptr<char, Free>;

  template <class Process>
  Consume each(Process process) const {
    return [this, process](const EdgeChunk& chunk) {
      for (const char* at = chunk.begin; at + chunk.edge_bytes <= chunk.end;
           at += chunk.edge_bytes) {
        const Edge& edge = *reinterpret_cast<const Edge*>(at);
        if (edge.source < 0 || edge.source >= vertex_count_ || edge.target < 0 ||
            edge.target >= vertex_count_) {
          die("%s: edge (%d, %d) in a graph of %lld vertices", directory_.c_str(), edge.source,
              edge.target, static_cast<long long>(vertex_count_));
        }
        if (chunk.window.contains(edge.source)) process(edge);
      }
    };
  }

  std::vector<int64_t> read_offsets(const std::string& name) const;
  int read_flags(const Sweep& sweep) const;
  int window_partitions(int64_t vertex_bytes) const;
  VertexRange partitions(int begin, int end) const;
  void stream(const File& file, const std::vector<int64_t>& offset, bool by_column,
              const Sweep& sweep, const Consume& consume);

  const std::string directory_;
  const GridOptions options_;
  int64_t vertex_count_ = 0;
  int64_t edge_count_ = 0;
  int partition_count_ = 0;
  size_t edge_bytes_ = 0;
  size_t page_bytes_ = 0;
  std::vector<int64_t> block_bytes_;  // [i * P + j]
  std::vector<int64_t> column_offset_;
  std::vector<int64_t> row_offset_;
  std::vector<Buffer> buffers_;  // one a thread
  int64_t bytes_streamed_ = 0;
};

}  // namespace engines
