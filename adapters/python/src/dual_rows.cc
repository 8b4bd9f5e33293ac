#include "adapters/python/src/dual_rows.h"

#include <algorithm>
#include <cstring>

namespace graphlane::python {

using graphfmt::WeightKind;

template <class T>
void append_numbers(const graphfmt::ListBatch& batch, std::vector<double>& to) {
  for (size_t at = 0; at + sizeof(T) <= batch.weights.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, batch.weights.data() + at, sizeof value);
    to.push_back(static_cast<double>(value));
  }
}

// Lists come in order, vertices without any are left out.
class RowSink final : public graphfmt::ListSink {
 public:
  RowSink(uint64_t first_vertex, WeightKind weight, DualRows::Row& row)
      : first_(first_vertex), weight_(weight), row_(row) {}

  Outcome<void> take(graphfmt::ListBatch& batch) override {
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      row_.offsets[batch.vertices[i] - first_ + 1] = batch.starts[i + 1] - batch.starts[i];
    }
    row_.neighbours.insert(row_.neighbours.end(), batch.neighbours.begin(), batch.neighbours.end());
    switch (weight_) {
      case WeightKind::kNone: break;
      case WeightKind::kFloat32: append_numbers<float>(batch, row_.weights); break;
      case WeightKind::kFloat64: append_numbers<double>(batch, row_.weights); break;
      case WeightKind::kInt64: append_numbers<int64_t>(batch, row_.weights); break;
    }
    return {};
  }

 private:
  const uint64_t first_;
  const WeightKind weight_;
  DualRows::Row& row_;
};

Outcome<std::unique_ptr<DualRows>> DualRows::open(const std::string& path) {
  auto dual = graphfmt::Dual::open(path);
  if (!dual) return dual.error();
  auto rows = std::make_unique<DualRows>();
  rows->dual_ = std::move(*dual);
  return rows;
}

Outcome<void> DualRows::read(graphfmt::DualSide side, uint32_t row, Row& into) const {
  into = {};
  into.offsets.assign(dual_->geometry().size(row) + 1, 0);
  RowSink sink(first_vertex(row), header().weight, into);
  const graphfmt::DualScanOptions options{
      .label = "read", .threads = 1, .first_row = row, .row_count = 1};
  if (Outcome<void> done = graphfmt::scan_dual(*dual_, side, options, sink); !done) return done;
  for (size_t i = 1; i < into.offsets.size(); ++i) into.offsets[i] += into.offsets[i - 1];
  return {};
}

}  // namespace graphlane::python
