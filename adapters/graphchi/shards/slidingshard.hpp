// sliding_shard: the edges of a shard that leave the current interval. They are a window that slides
// through the shard with the intervals, and are kept with their values.
//
//   shard    | done | window of this interval | …             sorted by source
//   values   | block  | block  | block  | …     in memory from their first edge until the window
//                                               has passed them, then written
//
// A window's structure is copied out of the shared pieces, so that no other job waits while its vertices
// are built.
#ifdef DYNAMICEDATA
// Edges' values of changing length: GraphChi's own shard, which reads through this stripedio.
#include "shards/dynamicdata/slidingshard.hpp"
#else
#ifndef GRAPHLANE_GRAPHCHI_SLIDINGSHARD_HPP
#define GRAPHLANE_GRAPHCHI_SLIDINGSHARD_HPP

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "api/graph_objects.hpp"
#include "graphchi_types.hpp"
#include "graphlane/structure.hpp"
#include "graphlane/values.hpp"
#include "io/stripedio.hpp"
#include "logger/logger.hpp"
#include "metrics/metrics.hpp"

namespace graphchi {

template <typename VT, typename ET, typename svertex_t = graphchi_vertex<VT, ET>, typename ETspecial = ET>
class sliding_shard {
 public:
  bool only_adjacency;

  // The edges to the vertices [range_start, range_end].
  sliding_shard(stripedio* iomgr, std::string filename_edata, std::string filename_adj, vid_t range_start,
                vid_t range_end, size_t blocksize, metrics& m, bool /*disable_writes*/ = false, bool onlyadj = false)
      : only_adjacency(onlyadj), iomgr_(iomgr), edata_(filename_edata), adj_(filename_adj),
        range_start_(range_start), range_end_(range_end), metrics_(m), block_bytes_(blocksize),
        adjacency_(iomgr->open_adjacency(filename_adj)) {
    while (block_bytes_ % sizeof(ET) != 0) ++block_bytes_;
    if (!only_adjacency) values_bytes_ = get_shard_edata_filesize<ET>(edata_);
  }
  sliding_shard(const sliding_shard&) = delete;
  sliding_shard& operator=(const sliding_shard&) = delete;
  ~sliding_shard() { release_prior_to_offset(true); }

  size_t num_edges() { return values_bytes_ / sizeof(ET); }

  // Resets all values.
  void initdata() {
    const std::unique_ptr<ET[]> fresh(new ET[block_bytes_ / sizeof(ET)]());
    for (size_t i = 0; i * block_bytes_ < values_bytes_; ++i) {
      const int session = iomgr_->open_session(block_name(i), false, true);
      iomgr_->pwritea_now(session, fresh.get(), std::min(block_bytes_, values_bytes_ - i * block_bytes_), 0);
      iomgr_->close_session(session);
    }
  }

  // Adds outgoing edges to the scheduled vertices in [start, start + count). `vertices` begins with
  // `start`. Positions of windows are always remembered, whatever `record_index` is.
  void read_next_vertices(int count, vid_t start, std::vector<svertex_t>& vertices, bool /*record_index*/ = false,
                          bool disable_writes = false) {
    metrics_entry time = metrics_.start_time();
    move_close_to(start);
    release_prior_to_offset(false, disable_writes);
    for (Segment& segment : copy_window(start, start + static_cast<vid_t>(count))) {
      graphlane_graphchi::Records records(adj_, segment.at, segment.bytes.get(),
                                          segment.bytes.get() + segment.size_bytes);
      while (records.next()) add_edges(records, vertices[records.at().vid - start]);
    }
    known_[at_.vid] = at_;
    metrics_.stop_time(time, "read_next_vertices");
  }

  // Releases all blocks, and writes them.
  void flush() { release_prior_to_offset(true); }

  void set_offset(size_t offset, vid_t vid, size_t values_offset) {
    at_.offset = offset;
    at_.vid = vid;
    at_.edge = values_offset / sizeof(ET);
  }

  // Releases the blocks that the window has passed, or all.
  void release_prior_to_offset(bool all = false, bool disable_writes = false) {
    while (!blocks_.empty() && (all || block_end(blocks_.begin()->first) <= at_.edge * sizeof(ET))) {
      give_up(blocks_.begin()->second, all || !async_writes_, disable_writes);
      blocks_.erase(blocks_.begin());
    }
  }

  void set_disable_async_writes(bool disable) { async_writes_ = !disable; }

  std::string get_info_json() {
    std::stringstream json;
    json << "\"size\": " << values_bytes_ << ", \"windowStart\": " << window_edge_ * sizeof(ET)
         << ", \"windowEnd\": " << at_.edge * sizeof(ET) << ", \"intervalStart\": " << range_start_
         << ", \"intervalEnd\": " << range_end_;
    return json.str();
  }

 private:
  struct Block {
    int session = CACHED_SESSION_ID;
    char* data = nullptr;
    size_t size_bytes = 0;
  };
  // A part of a window, of whole records.
  struct Segment {
    graphlane_graphchi::Place at;
    size_t size_bytes = 0;
    std::unique_ptr<uint8_t[]> bytes;
  };

  static bool values_are_read() {
#ifdef SUPPORT_DELETIONS
    return true;
#else
    return svertex_t().computational_edges();
#endif
  }

  std::string block_name(size_t index) const {
    return graphlane_graphchi::Values::of_program().edge_block(
        edata_, filename_shard_edata_block(edata_, static_cast<int>(index), block_bytes_));
  }
  size_t block_end(size_t index) const { return std::min((index + 1) * block_bytes_, values_bytes_); }

  // Moves forward to the last known position at or before `vid`.
  void move_close_to(vid_t vid) {
    if (at_.vid >= vid) return;
    const graphlane_graphchi::Place& piece = adjacency_->piece(adjacency_->piece_of(vid));
    if (piece.vid <= vid && piece.offset > at_.offset) at_ = piece;
    auto known = known_.upper_bound(vid);
    if (known == known_.begin()) return;
    --known;
    if (known->second.offset > at_.offset) at_ = known->second;
  }

  // Copies the records of vertices [start, end), by source, and moves at_ behind them.
  std::vector<Segment> copy_window(vid_t start, vid_t end) {
    std::vector<Segment> segments;
    window_edge_ = at_.edge;
    if (at_.vid >= end || at_.offset >= adjacency_->size_bytes()) return segments;
    const size_t first = adjacency_->piece_at(at_.offset);
    const size_t last = std::max(first, adjacency_->piece_of(end - 1));
    segments.resize(last - first + 1);
    std::vector<graphlane_graphchi::Place> behind(segments.size());
    const graphlane_graphchi::Place begin = at_;
    adjacency_->visit(first, last + 1, false, [&](size_t piece, const uint8_t* data, size_t size_bytes) {
      const size_t base = adjacency_->piece(piece).offset;
      const graphlane_graphchi::Place from = piece == first ? begin : adjacency_->piece(piece);
      Segment& segment = segments[piece - first];
      graphlane_graphchi::Records records(adj_, from, data + (from.offset - base), data + size_bytes);
      bool more = records.next();
      while (more && records.at().vid < start) more = records.next();
      segment.at = records.at();
      while (more && records.at().vid < end) more = records.next();
      behind[piece - first] = records.at();
      segment.size_bytes = records.at().offset - segment.at.offset;
      segment.bytes.reset(new uint8_t[segment.size_bytes]);
      memcpy(segment.bytes.get(), data + (segment.at.offset - base), segment.size_bytes);
    });
    at_ = behind.back();
    if (!segments.empty()) window_edge_ = segments[0].at.edge;
    return segments;
  }

  void add_edges(const graphlane_graphchi::Records& records, svertex_t& vertex) {
    if (!vertex.scheduled) return;
    size_t in_values = records.at().edge * sizeof(ET);
    const uint32_t count = records.count();
    if (!only_adjacency && in_values + count * sizeof(ET) > values_bytes_) {
      graphlane_graphchi::fail_at(adj_, records.at().offset, "damaged: more edges than values");
    }
    for (uint32_t i = 0; i < count; ++i) {
      bool special = false;
      vid_t target = records.target(i);
      if (sizeof(ET) != sizeof(ETspecial)) target = translate_edge(target, special);
      if (target < range_start_ || target > range_end_) {
        graphlane_graphchi::fail_at(adj_, records.at().offset, "damaged: an edge to another shard's vertex");
      }
      ET* value = nullptr;
      if (!only_adjacency) {
        value = value_at(in_values);
        in_values += sizeof(ET);
      }
      vertex.add_outedge(target, value, special);
    }
  }

  // The address of the value, which is valid once stripedio's reads are done.
  ET* value_at(size_t offset) {
    const size_t index = offset / block_bytes_;
    if (blocks_.empty() || blocks_.rbegin()->first != index) open_block(index);
    return reinterpret_cast<ET*>(blocks_.rbegin()->second.data + offset % block_bytes_);
  }

  void open_block(size_t index) {
    // Values that are used while edges are added are finished when the next block begins.
    while (values_are_computed() && !blocks_.empty()) {
      give_up(blocks_.begin()->second, true, false);
      blocks_.erase(blocks_.begin());
    }
    Block block;
    const std::string filename = block_name(index);
    block.size_bytes = block_end(index) - index * block_bytes_;
    block.data = static_cast<char*>(iomgr_->get_block_cache().get_cached(filename));
    if (block.data == nullptr) {
      block.session = iomgr_->open_session(filename, false, true);
      iomgr_->managed_malloc(block.session, &block.data, block.size_bytes, 0);
      if (values_are_read()) iomgr_->managed_preada_now(block.session, &block.data, block.size_bytes, 0);
      else iomgr_->managed_preada_async(block.session, &block.data, block.size_bytes, 0);
    }
    blocks_[index] = block;
  }
  static bool values_are_computed() { return svertex_t().computational_edges(); }

  void give_up(Block& block, bool now, bool disable_writes) {
    if (block.session == CACHED_SESSION_ID) return;
    const std::string filename = iomgr_->get_session_filename(block.session);
    if (!disable_writes) {
      if (iomgr_->get_block_cache().consider_caching(filename, block.data, block.size_bytes, true)) {
        iomgr_->close_session(block.session);
        return;
      }
      if (!now) {
        iomgr_->managed_pwritea_async(block.session, &block.data, block.size_bytes, 0, true, true);
        return;
      }
      iomgr_->managed_pwritea_now(block.session, &block.data, block.size_bytes, 0);
    }
    iomgr_->managed_release(block.session, &block.data);
    iomgr_->close_session(block.session);
  }

  stripedio* iomgr_;
  const std::string edata_;
  const std::string adj_;
  const vid_t range_start_;
  const vid_t range_end_;
  metrics& metrics_;
  size_t block_bytes_;
  size_t values_bytes_ = 0;
  bool async_writes_ = true;
  std::shared_ptr<graphlane_graphchi::Adjacency> adjacency_;
  graphlane_graphchi::Place at_;  // of the next record
  size_t window_edge_ = 0;
  std::map<vid_t, graphlane_graphchi::Place> known_;  // the ends of earlier windows
  std::map<size_t, Block> blocks_;
};

}  // namespace graphchi

#endif
#endif
