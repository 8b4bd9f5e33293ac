// Edge: the record of edge lists, and the stream of edges between a source and a sink. Sources:
// edge_list.h reads files, rmat.h generates. Sinks: edge_writer.h writes files, grid_build.cc sorts
// into blocks.
//
//                    any thread         one at a time,       any thread
//                                       in input order
//   source ──batch──▶ prepare(batch) ──▶ take(batch) ──────▶ settle()
//                     heavy work on      append, write       heavy work on what
//                     this batch alone                       take() completed
//
// A batch's records are bytes of the binary edge list itself (FORMAT.md), so
// that nothing is converted on the way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graphfmt/buffer.h"
#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

struct Edge {
  uint32_t source;
  uint32_t target;
};
static_assert(sizeof(Edge) == 8);

struct WeightedEdge {
  uint32_t source;
  uint32_t target;
  float weight;
};
static_assert(sizeof(WeightedEdge) == 12);

// Weights of 8 bytes, where float32 would round.
struct Float64Edge {
  uint32_t source;
  uint32_t target;
  double weight;
};
struct Int64Edge {
  uint32_t source;
  uint32_t target;
  int64_t weight;
};
static_assert(sizeof(Float64Edge) == 16 && sizeof(Int64Edge) == 16);

// The grid's limit: its engines keep vertex numbers, and one more than the largest, in an int32.
inline constexpr uint32_t kVertexMax = 2147483646;
inline constexpr uint64_t kVertexCountMax = uint64_t{kVertexMax} + 1;

// The limit of edge lists and stored lists: 0 … 2^32 - 2; one number is left that names none.
inline constexpr uint32_t kListVertexMax = 4294967294;
inline constexpr uint64_t kListVertexCountMax = uint64_t{kListVertexMax} + 1;

enum class WeightType : uint8_t { kFloat32, kFloat64, kInt64 };

// `type` counts if `weighted`.
constexpr size_t edge_size_bytes(bool weighted, WeightType type = WeightType::kFloat32) {
  if (!weighted) return sizeof(Edge);
  return type == WeightType::kFloat32 ? sizeof(WeightedEdge) : sizeof(Float64Edge);
}

struct EdgeBatch {
  bool weighted = false;
  WeightType weight_type = WeightType::kFloat32;  // if weighted: as EdgeListOptions says
  size_t edge_count = 0;
  Buffer records;  // edge_count × edge_bytes(), host (little) endian
  Buffer text;     // scratch of the sink: what prepare() leaves for take()
  size_t text_bytes = 0;

  size_t edge_bytes() const { return edge_size_bytes(weighted, weight_type); }
  size_t records_bytes() const { return edge_count * edge_bytes(); }
};

// EdgeSink: where a stream of edges goes. An error from any step ends the
// stream; the source hands it on.
class EdgeSink {
 public:
  virtual ~EdgeSink() = default;

  // Concurrently, in any order.
  virtual Outcome<void> prepare(EdgeBatch&) { return {}; }

  // Every batch once, in input order, one call at a time, from any thread.
  virtual Outcome<void> take(EdgeBatch& batch) = 0;

  // After a take(), by the same thread, while others go on.
  virtual Outcome<void> settle() { return {}; }
};

}  // namespace graphlane::graphfmt
