// BvReader: the lists of a BVGraph (Boldi and Vigna's WebGraph), decoded from the first vertex to
// the last.
//
// A list begins with its degree. With a window, a reference to one of the lists before follows, and
// blocks of that list, copied and skipped in turn. Then there are intervals of consecutive numbers,
// and the other numbers as gaps.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graphfmt/codec/bit_stream.h"
#include "iomgr/base/error.h"

namespace graphlane::python {

enum class BvCode { kUnary, kGamma, kDelta, kZeta };

// As NAME.properties has it.
struct BvFormat {
  uint64_t vertex_count = 0;
  uint32_t window = 0;
  uint32_t interval_length_min = 0;  // 0: no intervals
  uint32_t zeta_k = 3;
  BvCode degrees = BvCode::kGamma;
  BvCode references = BvCode::kUnary;
  BvCode block_counts = BvCode::kGamma;
  BvCode blocks = BvCode::kGamma;
  BvCode residuals = BvCode::kZeta;
};

class BvReader {
 public:
  // `bits` stay the caller's; `name` is for errors. vertex_count is at most 2^32, zeta_k within 1
  // and 16.
  BvReader(const BvFormat& format, std::span<const uint8_t> bits, std::string name);

  struct Arcs {
    std::vector<uint32_t> sources, targets;
  };
  // The arcs of the next vertices, at least `count` of them unless the graph ends. EBADMSG: the
  // file is damaged.
  Outcome<void> read(uint64_t count, Arcs& into);

 private:
  using List = std::vector<uint32_t>;

  uint64_t number(BvCode code);

  List& list_of(uint64_t vertex) { return recent_[vertex % recent_.size()]; }
  void decode(uint64_t vertex);
  uint64_t copy_blocks(uint64_t vertex, uint64_t degree);
  uint64_t add_intervals(uint64_t vertex, uint64_t left);
  void add_residuals(uint64_t vertex, uint64_t left);
  void add(uint64_t target, List& to);

  // Constant after construction.
  const BvFormat format_;
  const std::string name_;

  graphfmt::BitReader bits_;
  uint64_t next_vertex_ = 0;
  std::vector<List> recent_;   // lists of the window and the one that is decoded
  std::array<List, 3> parts_;  // of that one: copied, intervals, residuals
};

}  // namespace graphlane::python
