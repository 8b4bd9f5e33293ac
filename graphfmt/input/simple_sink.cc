#include "graphfmt/input/simple_sink.h"

#include <cstring>

#include "graphfmt/sort/line.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kSimpleBatchEdges = size_t{64} << 10;

}  // namespace

SimpleSink::SimpleSink(EdgeSink& next, bool weighted, WeightType type, uint64_t memory_bytes,
                       std::string spill_directory)
    : next_(next),
      weighted_(weighted),
      type_(type),
      sorter_(EdgeOrder::kSourceTarget, edge_size_bytes(weighted, type), memory_bytes,
              std::move(spill_directory)) {}

Outcome<void> SimpleSink::take(EdgeBatch& batch) {
  return sorter_.add(batch.records.data(), batch.edge_count);
}

// The next edges that stay. A batch may have none while there are more.
Outcome<bool> SimpleSink::load(EdgeBatch& batch) {
  batch.weighted = weighted_;
  batch.weight_type = type_;
  const size_t edge_bytes = batch.edge_bytes();
  if (auto grown = batch.records.reserve(kSimpleBatchEdges * edge_bytes); !grown) {
    return grown.error();
  }
  batch.edge_count = 0;
  while (batch.edge_count == 0) {
    auto count = sorter_.next(batch.records.data(), kSimpleBatchEdges);
    if (!count) return count.error();
    if (*count == 0) return false;
    const char* from = batch.records.data();
    for (size_t i = 0; i < *count; ++i, from += edge_bytes) {
      Edge edge;
      std::memcpy(&edge, from, sizeof edge);
      const bool is_equal = last_ && last_->source == edge.source && last_->target == edge.target;
      if (edge.source == edge.target || is_equal) continue;
      last_ = edge;
      std::memmove(batch.records.data() + batch.edge_count * edge_bytes, from, edge_bytes);
      ++batch.edge_count;
    }
  }
  edge_count_ += batch.edge_count;
  return true;
}

Outcome<void> SimpleSink::hand_on(unsigned threads) {
  if (auto finished = sorter_.finish(); !finished) return finished;
  Line<EdgeBatch> line;
  line.load = [this](EdgeBatch& batch) { return load(batch); };
  line.work = [this](EdgeBatch& batch) { return next_.prepare(batch); };
  line.unload = [this](EdgeBatch& batch) { return next_.take(batch); };
  line.settle = [this](EdgeBatch&) { return next_.settle(); };
  return line.run(usable_threads(threads));
}

}  // namespace graphlane::graphfmt
