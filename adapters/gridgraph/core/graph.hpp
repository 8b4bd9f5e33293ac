// Graph: GridGraph's, over partitions that all jobs on a grid share.
//
// GridGraph's own programs compile against this unchanged:
//
//   g++ -I adapters/gridgraph bfs.cpp $(pkg-config --cflags --libs graphlane-share)
//
// stream_edges() goes through the grid's blocks by adapters/share. They come in the order that serves
// all jobs, from one copy in memory. A block holds the same edges in `row` and in `column`, so both
// update modes read `column`. The budget in bytes decides only the windows: vertices that do not fit
// memory are processed in batches of partitions. Each batch is a sweep of its own over the blocks of
// these sources.
//
// Threads: as GridGraph's. All of them call process() at once; one thread calls everything else. Errors
// end the program with a line, because GridGraph's programs handle none.
#ifndef GRAPHLANE_GRIDGRAPH_GRAPH_HPP
#define GRAPHLANE_GRIDGRAPH_GRAPH_HPP

#include <assert.h>
#include <graphlane_share.h>
#include <malloc.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if __has_include(<omp.h>)
#include <omp.h>
#endif

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/atomic.hpp"
#include "core/bigvector.hpp"
#include "core/bitmap.hpp"
#include "core/constants.hpp"
#include "core/filesystem.hpp"
#include "core/partition.hpp"
#include "core/queue.hpp"
#include "core/threads.hpp"
#include "core/time.hpp"
#include "core/type.hpp"

// Hooks that do nothing.
inline void f_none_1(std::pair<VertexId, VertexId>) {}
inline void f_none_2(std::pair<VertexId, VertexId>, std::pair<VertexId, VertexId>) {}
inline bool f_true(VertexId) { return true; }

class Graph {
 public:
  typedef std::pair<VertexId, VertexId> Range;
  typedef std::function<void(Range)> Hook;

  Graph() = default;
  explicit Graph(std::string grid) { init(grid); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { graphlane_share_end(job_); }

  void init(std::string grid) {
    graphlane_share_options options = graphlane_share_options();
    options.thread_count = threads_.count();
    options.thread_count_min = 1;
    graphlane_share_grid info;
    graphlane_share_end(job_);
    job_ = nullptr;
    check(graphlane_share_init_grid(grid.c_str(), &options, &job_, &info));
    path = grid;
    edge_type = static_cast<int>(info.weighted);
    vertices = static_cast<VertexId>(info.vertex_count);
    edges = static_cast<EdgeId>(info.edge_count);
    partitions = static_cast<int>(info.partitions);
    partition_batch_ = partitions;
  }

  Bitmap* alloc_bitmap() { return new Bitmap(static_cast<size_t>(vertices)); }
  void set_memory_bytes(long bytes) { memory_bytes_ = bytes; }
  void set_vertex_data_bytes(long bytes) { vertex_data_bytes_ = bytes; }

  // Sets the partitions of a window, at `bytes` for all vertices: as many as fit 0.8 of the memory.
  void set_partition_batch(long bytes) {
    const double room = 0.8 * static_cast<double>(memory_bytes_) * partitions;
    const double batch = bytes <= 0 ? partitions : room / static_cast<double>(bytes);
    partition_batch_ = static_cast<int>(std::max(1.0, std::min<double>(batch, partitions)));
  }
  // Names the vectors that a window will need.
  template <class... Vectors>
  void hint(const Vectors&... vectors) {
    long bytes = 0;
    const long sizes[] = {static_cast<long>(sizeof(*vectors.data) * vectors.length)...};
    for (const long size : sizes) bytes += size;
    set_partition_batch(bytes);
  }

  // The sum of process(v) over the vertices, or over those of the bitmap. The caller names T. `process`
  // is any callable, and is compiled into the loop. The hooks are called around each window if the
  // vertices' data do not fit memory.
  template <class T, class Process>
  T stream_vertices(Process process, Bitmap* bitmap = nullptr, T zero = 0,
                    Hook before = nullptr, Hook after = nullptr) {
    T total = zero;
    const bool windows = bitmap == nullptr && vertex_data_bytes_ > 0.8 * static_cast<double>(memory_bytes_);
    const int batch = windows ? partition_batch_ : partitions;
    for (int begin = 0; begin < partitions; begin += batch) {
      const Range range = window(begin, batch);
      if (windows && before) before(range);
      const size_t count = static_cast<size_t>(range.second - range.first);
      run(count, kPieceVertices, threads_.count(), total, zero, [&](size_t first, size_t end) {
        T sum = zero;
        for (size_t i = first; i < end; ++i) {
          const VertexId v = range.first + static_cast<VertexId>(i);
          if (bitmap != nullptr && !bitmap->get_bit(static_cast<size_t>(v))) continue;
          sum += static_cast<T>(process(v));
        }
        return sum;
      });
      if (windows && after) after(range);
    }
    return total;
  }

  // The sum of process(edge) over the edges, or over those with a source in the bitmap. The hooks of the
  // sources are called around each window; there are no windows of targets.
  template <class T, class Process>
  T stream_edges(Process process, Bitmap* bitmap = nullptr, T zero = 0,
                 int /*update_mode*/ = 1, Hook before_sources = nullptr, Hook after_sources = nullptr,
                 Hook /*before_targets*/ = nullptr, Hook /*after_targets*/ = nullptr) {
    T total = zero;
    for (int begin = 0; begin < partitions; begin += partition_batch_) {
      const Range range = window(begin, partition_batch_);
      if (before_sources) before_sources(range);
      if (begin_sweep(begin, std::min(begin + partition_batch_, partitions), bitmap)) {
        sweep<T>(process, bitmap, zero, total);
      }
      if (after_sources) after_sources(range);
    }
    return total;
  }

  std::string path;
  int edge_type = 0;
  VertexId vertices = 0;
  EdgeId edges = 0;
  int partitions = 0;

 private:
  static const size_t kPieceEdges = 1 << 13;
  static const size_t kPieceVertices = 1 << 14;

  Range window(int first, int count) const {
    const int last = std::min(first + count, partitions) - 1;
    return Range(range_of(first).first, range_of(last).second);
  }
  Range range_of(int partition) const {
    const std::pair<size_t, size_t> range =
        get_partition_range(static_cast<size_t>(vertices), static_cast<size_t>(partitions),
                            static_cast<size_t>(partition));
    return Range(static_cast<VertexId>(range.first), static_cast<VertexId>(range.second));
  }

  // Begins a sweep over the blocks with sources in partitions [first, end) that have an active vertex.
  bool begin_sweep(int first, int end, const Bitmap* bitmap) {
    const size_t count = static_cast<size_t>(partitions) * static_cast<size_t>(partitions);
    std::vector<uint64_t> blocks((count + 63) / 64);
    bool any = false;
    for (int i = first; i < end; ++i) {
      const Range range = range_of(i);
      const size_t last = static_cast<size_t>(range.second);
      if (bitmap != nullptr && !bitmap->any(static_cast<size_t>(range.first), last)) continue;
      any = true;
      for (size_t j = 0; j < static_cast<size_t>(partitions); ++j) {
        const size_t block = j * static_cast<size_t>(partitions) + static_cast<size_t>(i);
        blocks[block / 64] |= uint64_t(1) << block % 64;
      }
    }
    if (any) check(graphlane_share_get_active_partitions(job_, blocks.data()));
    return any;
  }

  template <class T, class Process>
  void sweep(Process& process, const Bitmap* bitmap, const T& zero, T& total) {
    uint32_t block;
    graphlane_share_chunk chunk;
    while (check(graphlane_share_sharing(job_, &block)) == 1) {
      while (check(graphlane_share_start(job_, &chunk)) == 1) {
        const char* edges_of_chunk = static_cast<const char*>(chunk.data);
        run(chunk.edge_count, kPieceEdges, chunk.thread_count, total, zero, [&](size_t first, size_t end) {
          return edge_type == 0 ? piece<8>(edges_of_chunk, first, end, process, bitmap, zero)
                                : piece<12>(edges_of_chunk, first, end, process, bitmap, zero);
        });
        check(graphlane_share_barrier(job_));
      }
    }
  }

  // A constant edge size makes the copy one move instead of a call.
  template <size_t kEdgeBytes, class T, class Process>
  T piece(const char* edges_of_chunk, size_t first, size_t end, Process& process,
          const Bitmap* bitmap, const T& zero) const {
    T sum = zero;
    for (size_t i = first; i < end; ++i) {
      // A copy, because shared edges are read-only and process() may write.
      Edge edge = {0, 0, 0};
      memcpy(&edge, edges_of_chunk + i * kEdgeBytes, kEdgeBytes);
      if (bitmap != nullptr && !bitmap->get_bit(static_cast<size_t>(edge.source))) continue;
      sum += static_cast<T>(process(edge));
    }
    return sum;
  }

  // Adds piece(first, end) over [0, count) to `total`.
  template <class T, class Piece>
  void run(size_t count, size_t piece_size, unsigned thread_count, T& total, const T& zero,
           const Piece& piece) {
    const size_t piece_count = (count + piece_size - 1) / piece_size;
    std::vector<T> sums(piece_count, zero);
    threads_.run(piece_count, thread_count, [&](size_t i) {
      sums[i] = piece(i * piece_size, std::min(count, (i + 1) * piece_size));
    });
    for (const T& sum : sums) total += sum;
  }

  int check(int result) const {
    if (result >= 0) return result;
    fprintf(stderr, "%s\n", graphlane_share_error());
    exit(1);
  }

  graphlane_share* job_ = nullptr;
  long memory_bytes_ = 1l << 40;
  long vertex_data_bytes_ = 0;
  int partition_batch_ = 1;
  graphlane_gridgraph::Threads threads_;
};

#endif
