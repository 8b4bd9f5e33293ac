#include "graphfmt/input/mirror_sink.h"

#include <cstring>

namespace graphlane::graphfmt {
namespace {

template <class T>
void negate_weight(char* weight) {
  T value;
  std::memcpy(&value, weight, sizeof value);
  value = -value;
  std::memcpy(weight, &value, sizeof value);
}

void negate_weight(char* weight, WeightType type) {
  switch (type) {
    case WeightType::kFloat32: return negate_weight<float>(weight);
    case WeightType::kFloat64: return negate_weight<double>(weight);
    case WeightType::kInt64: return negate_weight<int64_t>(weight);
  }
}

// The record at `from`, and behind it the other way round, unless it is a self-loop. The end.
char* put_both(const char* from, char* to, size_t edge_bytes) {
  Edge edge;
  std::memcpy(&edge, from, sizeof edge);
  std::memcpy(to, from, edge_bytes);
  if (edge.source == edge.target) return to + edge_bytes;
  char* const second = to + edge_bytes;
  std::memcpy(second, &edge.target, sizeof edge.target);
  std::memcpy(second + sizeof edge.target, &edge.source, sizeof edge.source);
  std::memcpy(second + sizeof edge, from + sizeof edge, edge_bytes - sizeof edge);
  return second + edge_bytes;
}

}  // namespace

Outcome<void> MirrorSink::prepare(EdgeBatch& batch) {
  const size_t edge_bytes = batch.edge_bytes();
  Buffer both;
  if (auto grown = both.reserve(2 * batch.records_bytes()); !grown) return grown;
  const char* from = batch.records.data();
  char* to = both.data();
  for (size_t i = 0; i < batch.edge_count; ++i, from += edge_bytes) {
    char* const end = put_both(from, to, edge_bytes);
    if (negate_ && batch.weighted && end - to > static_cast<ptrdiff_t>(edge_bytes)) {
      negate_weight(to + edge_bytes + sizeof(Edge), batch.weight_type);
    }
    to = end;
  }
  batch.edge_count = static_cast<size_t>(to - both.data()) / edge_bytes;
  batch.records = std::move(both);
  return next_.prepare(batch);
}

}  // namespace graphlane::graphfmt
