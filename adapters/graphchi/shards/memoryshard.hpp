// memory_shard: the shard of the current interval. Its edges' values are in memory; its structure is read
// in the memory that all jobs share (graphlane/structure.hpp).
//
// GraphChi reads a copy of the shard's adjacency for each job and builds vertices from it. Here
// load_vertices() builds them piece by piece from shared memory. If GraphChi would use one thread, edges
// come in GraphChi's order.
#ifdef DYNAMICEDATA
// Edges' values of changing length: GraphChi's own shard, which reads through this stripedio.
#include "shards/dynamicdata/memoryshard.hpp"
#else
#ifndef GRAPHLANE_GRAPHCHI_MEMORYSHARD_HPP
#define GRAPHLANE_GRAPHCHI_MEMORYSHARD_HPP

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/graph_objects.hpp"
#include "graphchi_types.hpp"
#include "graphlane/structure.hpp"
#include "graphlane/values.hpp"
#include "io/stripedio.hpp"
#include "metrics/metrics.hpp"

namespace graphchi {

template <typename VT, typename ET, typename svertex_t = graphchi_vertex<VT, ET> >
class memory_shard {
 public:
  bool only_adjacency = false;

  // The shard of the vertices [range_start, range_end].
  memory_shard(stripedio* iomgr, std::string filename_edata, std::string filename_adj, vid_t range_start,
               vid_t range_end, size_t blocksize, metrics& m)
      : iomgr_(iomgr), edata_(filename_edata), adj_(filename_adj), range_start_(range_start),
        range_end_(range_end), block_bytes_(blocksize), metrics_(m) {}
  memory_shard(const memory_shard&) = delete;
  memory_shard& operator=(const memory_shard&) = delete;
  ~memory_shard() {
    if (!blocks_.empty()) iomgr_->wait_for_reads();
    for (Block& block : blocks_) release(block);
  }

  void set_disable_async_writes(bool disable) { async_writes_ = !disable; }
  void disable_parallel_loading() { parallel_ = false; }
  bool loaded() { return loaded_; }

  // Begins to read the edges' values.
  void load() {
    loaded_ = true;
    adjacency_ = iomgr_->open_adjacency(adj_);
    values_bytes_ = 0;
    if (!only_adjacency) {
      values_bytes_ = get_shard_edata_filesize<ET>(edata_);
      load_values();
    }
    range_begin_.offset = range_behind_.offset = adjacency_->size_bytes();
    range_begin_.edge = range_behind_.edge = values_bytes_ / sizeof(ET);
    range_begin_.vid = range_behind_.vid = UINT32_MAX;
  }

  // Adds the edges of the scheduled vertices in [window_start, window_end]. `vertices` begins with
  // window_start.
  void load_vertices(vid_t window_start, vid_t window_end, std::vector<svertex_t>& vertices, bool inedges = true,
                     bool outedges = true) {
    metrics_entry time = metrics_.start_time();
    if (values_are_read()) iomgr_->wait_for_reads();
    size_t first = 0;
    size_t end = adjacency_->piece_count();
    if (!inedges) {
      first = adjacency_->piece_of(window_start);
      end = adjacency_->piece_of(window_end) + 1;
    }
    const bool parallel = parallel_ && adjacency_->piece_count() > 1 && omp_get_max_threads() > 1;
    const int thread_count = std::min(omp_get_max_threads(), omp_get_num_procs());
    Window window = {window_start, window_end, inedges, outedges, vertices};
    adjacency_->visit(first, end, !parallel, [&](size_t piece, const uint8_t* data, size_t size_bytes) {
      const graphlane_graphchi::Place& begin = adjacency_->piece(piece);
      if (!parallel) {
        add_edges(begin, data, data + size_bytes, window);
        return;
      }
      const std::vector<graphlane_graphchi::Place>& cuts = adjacency_->cuts(piece, data, size_bytes);
      const int count = static_cast<int>(cuts.size()) - 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(thread_count)
      for (int i = 0; i < count; ++i) {
        add_edges(cuts[i], data + (cuts[i].offset - begin.offset), data + (cuts[i + 1].offset - begin.offset), window);
      }
    });
    metrics_.stop_time(time, "memoryshard_create_edges", false);
  }

  // Writes blocks that may have changed, and ends the use of the shard.
  void commit(bool commit_inedges, bool commit_outedges) {
    if (blocks_.empty() || only_adjacency) return;
    assert(loaded_);
    metrics_entry time = metrics_.start_time();
    iomgr_->wait_for_reads();
    const size_t first = range_begin_.edge * sizeof(ET) / block_bytes_;
    const size_t last = range_behind_.edge * sizeof(ET) / block_bytes_;
    const int count = static_cast<int>(blocks_.size());
#pragma omp parallel for
    for (int i = 0; i < count; ++i) {
      const size_t index = static_cast<size_t>(i);
      // The sliding windows of this iteration have passed the blocks before `first`.
      if (commit_inedges) commit_block(blocks_[index], true, async_writes_ && index < first);
      else if (commit_outedges) commit_block(blocks_[index], index >= first && index <= last, false);
      else release(blocks_[index]);
    }
    blocks_.clear();
    loaded_ = false;
    metrics_.stop_time(time, "memshard_commit");
  }

  // The first vertex behind the range, at which the sliding shard continues.
  size_t offset_for_stream_cont() { return range_behind_.offset; }
  vid_t offset_vid_for_stream_cont() { return range_behind_.vid; }
  size_t edata_ptr_for_stream_cont() { return range_behind_.edge * sizeof(ET); }

 private:
  static const uint32_t kAheadEdges = 24;

  struct Block {
    std::string filename;
    int session = CACHED_SESSION_ID;
    char* data = nullptr;
    size_t size_bytes = 0;
  };
  struct Window {
    vid_t start;
    vid_t end;
    bool inedges;
    bool outedges;
    std::vector<svertex_t>& vertices;
  };

  // Whether vertices look at the values while their edges are added.
  static bool values_are_read() {
#ifdef SUPPORT_DELETIONS
    return true;
#else
    return svertex_t().computational_edges();
#endif
  }

  void load_values() {
    assert(block_bytes_ % sizeof(ET) == 0);
    const size_t count = (values_bytes_ + block_bytes_ - 1) / block_bytes_;
    blocks_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      Block& block = blocks_[i];
      block.filename = graphlane_graphchi::Values::of_program().edge_block(
          edata_, filename_shard_edata_block(edata_, static_cast<int>(i), block_bytes_));
      block.size_bytes = std::min(block_bytes_, values_bytes_ - i * block_bytes_);
      block.data = static_cast<char*>(iomgr_->get_block_cache().get_cached(block.filename));
      if (block.data != nullptr) continue;
      block.session = iomgr_->open_session(block.filename, false, true);
      iomgr_->managed_malloc(block.session, &block.data, block.size_bytes, 0);
      iomgr_->managed_preada_async(block.session, &block.data, block.size_bytes, 0);
    }
  }

  void commit_block(Block& block, bool write, bool async) {
    if (block.session != CACHED_SESSION_ID) {
      if (iomgr_->get_block_cache().consider_caching(block.filename, block.data, block.size_bytes, true)) {
        block.data = nullptr;
      } else if (write && async) {
        iomgr_->managed_pwritea_async(block.session, &block.data, block.size_bytes, 0, true, true);
        block = Block();
      } else if (write) {
        iomgr_->managed_pwritea_now(block.session, &block.data, block.size_bytes, 0);
      }
    }
    release(block);
  }
  void release(Block& block) {
    if (block.session != CACHED_SESSION_ID) {
      if (block.data != nullptr) iomgr_->managed_release(block.session, &block.data);
      iomgr_->close_session(block.session);
    }
    block = Block();
  }

  void add_edges(const graphlane_graphchi::Place& begin, const uint8_t* data, const uint8_t* end, Window& window) {
    graphlane_graphchi::Place first;   // the first record in the range
    graphlane_graphchi::Place behind;  // the first record behind it
    first.offset = behind.offset = SIZE_MAX;
    graphlane_graphchi::Records records(adj_, begin, data, end);
    graphlane_graphchi::Records ahead(adj_, begin, data, end);
    while (records.next()) {
      const graphlane_graphchi::Place& at = records.at();
      while (ahead.next_edge() < at.edge + kAheadEdges && ahead.next()) fetch(ahead, 0, kAheadEdges, window);
      if (at.vid >= range_start_ && first.offset == SIZE_MAX) first = at;
      if (at.vid > range_end_ && behind.offset == SIZE_MAX) behind = at;
      if (!only_adjacency && (at.edge + records.count()) * sizeof(ET) > values_bytes_) {
        graphlane_graphchi::fail_at(adj_, at.offset, "damaged: more edges than values");
      }
      svertex_t* source = nullptr;
      if (at.vid >= window.start && at.vid <= window.end) {
        source = &window.vertices[at.vid - window.start];
        if (!source->scheduled) source = nullptr;
      }
      if (source == nullptr && !window.inedges) continue;
      add_edges_of(source, records, window);
    }
    const std::lock_guard<std::mutex> lock(range_mu_);
    if (first.offset < range_begin_.offset) range_begin_ = first;
    if (behind.offset < range_behind_.offset) range_behind_ = behind;
  }

  // Prefetches the targets' vertices, which are scattered in memory.
  static void fetch(const graphlane_graphchi::Records& records, uint32_t first, uint32_t count, const Window& window) {
    const uint32_t end = std::min(records.count(), first + count);
    for (uint32_t i = first; i < end; ++i) {
      const vid_t target = records.target(i);
      if (target >= window.start && target <= window.end) {
        __builtin_prefetch(window.vertices.data() + (target - window.start), 1);
      }
    }
  }

  void add_edges_of(svertex_t* source, const graphlane_graphchi::Records& records, Window& window) {
    const vid_t vid = records.at().vid;
    const uint32_t count = records.count();
    size_t in_values = records.at().edge * sizeof(ET);
    bool inside = false;
    ET* value = nullptr;
    size_t left = 0;  // values from `value` to the end of its block
    for (uint32_t i = 0; i < count; ++i) {
      if (i + kAheadEdges < count) fetch(records, i + kAheadEdges, 1, window);
      if (!only_adjacency) {
        if (left == 0) {
          const size_t in_block = in_values % block_bytes_;
          value = reinterpret_cast<ET*>(blocks_[in_values / block_bytes_].data + in_block);
          left = (block_bytes_ - in_block) / sizeof(ET);
          in_values += left * sizeof(ET);
        } else {
          ++value;
        }
        --left;
      }
      const vid_t target = records.target(i);
      if (source != nullptr && window.outedges) source->add_outedge(target, value, false);
      if (target < window.start) continue;
      if (target > window.end) {
        // Targets ascend.
        if (source == nullptr) break;
        continue;
      }
      if (!window.inedges) continue;
      svertex_t& vertex = window.vertices[target - window.start];
      if (!vertex.scheduled) continue;
      inside = true;
      vertex.add_inedge(vid, value, false);
      if (source != nullptr) vertex.parallel_safe = false;
    }
    if (inside && source != nullptr) source->parallel_safe = false;
  }

  stripedio* iomgr_;
  const std::string edata_;
  const std::string adj_;
  const vid_t range_start_;
  const vid_t range_end_;
  const size_t block_bytes_;
  metrics& metrics_;
  bool async_writes_ = true;
  bool parallel_ = true;
  bool loaded_ = false;
  size_t values_bytes_ = 0;
  std::shared_ptr<graphlane_graphchi::Adjacency> adjacency_;
  std::vector<Block> blocks_;
  std::mutex range_mu_;
  graphlane_graphchi::Place range_begin_;   // the first record of the range
  graphlane_graphchi::Place range_behind_;  // the first one behind it
};

}  // namespace graphchi

#endif
#endif
