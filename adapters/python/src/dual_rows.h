// DualRows: a graph of the format `dual`, read by whole rows of blocks: the lists of one interval
// of vertices.
//
// Threads: any, at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graphfmt/dual/dual_read.h"

namespace graphlane::python {

class DualRows {
 public:
  static Outcome<std::unique_ptr<DualRows>> open(const std::string& path);

  const graphfmt::GraphHeader& header() const { return dual_->header(); }
  // Of interval `row`, at most the partition count: its first vertex, or the end of all.
  uint64_t first_vertex(uint32_t row) const { return dual_->geometry().first(row); }

  // The row as CSR. `offsets` has one number for each vertex of the interval and one for the end.
  struct Row {
    std::vector<uint64_t> offsets;
    std::vector<uint32_t> neighbours;
    std::vector<double> weights;  // empty: the graph has none
  };
  // One thread reads, as the caller may have several.
  Outcome<void> read(graphfmt::DualSide side, uint32_t row, Row& into) const;

 private:
  std::unique_ptr<graphfmt::Dual> dual_;
};

}  // namespace graphlane::python
