// SimpleSink: hands on a simple graph: edges sorted by source and target, without self-loops, and
// of equal pairs the first of the input alone, with its weight.
#pragma once

#include <optional>

#include "graphfmt/input/edge_sort.h"

namespace graphlane::graphfmt {

class SimpleSink : public EdgeSink {
 public:
  SimpleSink(EdgeSink& next, bool weighted, WeightType type, uint64_t memory_bytes,
             std::string spill_directory);

  Outcome<void> take(EdgeBatch& batch) override;
  // After the last take(): everything to the next sink.
  Outcome<void> hand_on(unsigned threads);

  uint64_t edge_count() const { return edge_count_; }  // handed on

 private:
  Outcome<bool> load(EdgeBatch& batch);

  EdgeSink& next_;
  const bool weighted_;
  const WeightType type_;
  EdgeSorter sorter_;
  std::optional<Edge> last_;
  uint64_t edge_count_ = 0;
};

}  // namespace graphlane::graphfmt
