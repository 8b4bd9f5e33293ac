// MirrorSink: hands every edge on both ways, one behind the other, a self-loop once.
#pragma once

#include "graphfmt/edge.h"

namespace graphlane::graphfmt {

class MirrorSink : public EdgeSink {
 public:
  // `negate`: the second has the weight's other sign (a skew-symmetric matrix).
  explicit MirrorSink(EdgeSink& next, bool negate = false) : next_(next), negate_(negate) {}

  Outcome<void> prepare(EdgeBatch& batch) override;
  Outcome<void> take(EdgeBatch& batch) override {
    edge_count_ += batch.edge_count;
    return next_.take(batch);
  }
  Outcome<void> settle() override { return next_.settle(); }

  uint64_t edge_count() const { return edge_count_; }  // handed on

 private:
  EdgeSink& next_;
  const bool negate_;
  uint64_t edge_count_ = 0;  // take() only
};

}  // namespace graphlane::graphfmt
