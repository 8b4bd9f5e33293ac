// Sinks for the lists of a stored graph that is read whole: EdgesOfLists gives its edges, ArcSum a
// number by which two directions are compared.
//
// Threads: as ListSink says.
#pragma once

#include <cstring>
#include <utility>

#include "graphfmt/edge_list.h"
#include "graphfmt/graph_header.h"
#include "graphfmt/list_sink.h"

namespace graphlane::graphfmt {

// Whether the options can be kept: weights that are there and of the wanted type, vertices that are
// allowed. EINVAL else.
inline Outcome<void> check_stored_edges(const GraphHeader& header, const EdgeListOptions& options) {
  if (options.weighted && header.weight == WeightKind::kNone) {
    return make_error(EINVAL, "{}: its edges have no weights", options.path);
  }
  if (options.weighted && header.weight != weight_kind(true, options.weight_type)) {
    return make_error(EINVAL, "{}: its weights are {}: --weights {} keeps them", options.path,
                      name_of(header.weight), name_of(header.weight));
  }
  const uint64_t most = options.vertices != 0 ? options.vertices : options.vertex_count_max;
  if (header.vertex_count > most) {
    return make_error(EINVAL, "{}: has {} vertices, and at most {} are allowed here", options.path,
                      header.vertex_count, most);
  }
  return {};
}

// Lists to edges.
class EdgesOfLists : public ListSink {
 public:
  EdgesOfLists(bool is_directed, const EdgeListOptions& options, EdgeSink& sink)
      : is_directed_(is_directed),
        is_weighted_(options.weighted),
        weight_type_(options.weight_type),
        sink_(sink) {}

  // Goes on in order: a batch has to live until the EdgeSink has taken it.
  Outcome<void> take(ListBatch& batch) override {
    edges_.weighted = is_weighted_;
    edges_.weight_type = weight_type_;
    const size_t size = edges_.edge_bytes();
    const size_t weight_bytes = size - sizeof(Edge);
    if (auto grown = edges_.records.reserve(batch.neighbours.size() * size); !grown) return grown;
    char* to = edges_.records.data();
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      for (size_t arc = batch.starts[i]; arc < batch.starts[i + 1]; ++arc) {
        const Edge edge{batch.vertices[i], batch.neighbours[arc]};
        if (!is_directed_ && edge.target < edge.source) continue;
        std::memcpy(to, &edge, sizeof edge);
        if (is_weighted_) {
          std::memcpy(to + sizeof edge, batch.weights.data() + arc * weight_bytes, weight_bytes);
        }
        to += size;
      }
    }
    edges_.edge_count = static_cast<size_t>(to - edges_.records.data()) / size;
    edge_count_ += edges_.edge_count;
    if (auto prepared = sink_.prepare(edges_); !prepared) return prepared;
    return sink_.take(edges_);
  }

  Outcome<void> settle(ListBatch&) override { return sink_.settle(); }

  uint64_t edge_count() const { return edge_count_; }

 private:
  const bool is_directed_;
  const bool is_weighted_;
  const WeightType weight_type_;
  EdgeSink& sink_;
  EdgeBatch edges_;
  uint64_t edge_count_ = 0;
};

inline uint64_t mixed(uint64_t value) {
  value = (value ^ value >> 32) * 0x9e3779b97f4a7c15;
  value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9;
  return value ^ value >> 32;
}

// Adds up a number for each arc, so that the same arcs in another order have the same sum.
class ArcSum : public ListSink {
 public:
  // `by_target`: a list holds the sources of its vertex.
  ArcSum(bool by_target, size_t weight_bytes)
      : by_target_(by_target), weight_bytes_(weight_bytes) {}

  Outcome<void> prepare(ListBatch& batch) override {
    uint64_t all = 0, forward = 0, backward = 0;
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      for (size_t arc = batch.starts[i]; arc < batch.starts[i + 1]; ++arc) {
        uint64_t source = batch.vertices[i], target = batch.neighbours[arc];
        if (by_target_) std::swap(source, target);
        uint64_t weight = 0;
        if (weight_bytes_ > 0) {
          std::memcpy(&weight, batch.weights.data() + arc * weight_bytes_, weight_bytes_);
        }
        const uint64_t turn = mixed(weight + 1);
        if (source <= target) forward += mixed(source << 32 | target) * turn;
        if (source >= target) backward += mixed(target << 32 | source) * turn;
        all += mixed((source << 32 | target) + 1) * turn;
      }
    }
    batch.tally = all;
    batch.offset = forward;
    batch.weights_offset = backward;
    return {};
  }

  Outcome<void> take(ListBatch& batch) override {
    all_ += batch.tally;
    arc_count_ += batch.neighbours.size();
    forward_ += batch.offset;
    backward_ += batch.weights_offset;
    return {};
  }

  uint64_t all() const { return all_; }
  uint64_t arc_count() const { return arc_count_; }
  // Whether every arc is there in both directions.
  bool is_symmetric() const { return forward_ == backward_; }

 private:
  const bool by_target_;
  const size_t weight_bytes_;
  uint64_t all_ = 0;
  uint64_t arc_count_ = 0;
  uint64_t forward_ = 0;
  uint64_t backward_ = 0;
};

}  // namespace graphlane::graphfmt
