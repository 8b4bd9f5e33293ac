// DualRow: the blocks of one row while it is built: lists come vertex by vertex, and go out block
// by block.
//
//   append(other, vertex, list) ─▶ block (own, 0)  index ·  lists ·  weights
//                               ─▶ block (own, 1)  …
//
// Lists and weights beyond a limit of memory go to a spill file.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graphfmt/list_index.h"
#include "graphfmt/output/out_file.h"

namespace graphlane::graphfmt {

// Bytes that are appended, and later read once, in order.
class SpillableBytes {
 public:
  void append(const void* data, size_t length_bytes) {
    const auto* const from = static_cast<const uint8_t*>(data);
    memory_.insert(memory_.end(), from, from + length_bytes);
  }
  uint64_t memory_bytes() const { return memory_.size(); }
  // Moves what is in memory to the end of the file, which is at `end`.
  Outcome<void> spill(const OutFile& file, uint64_t& end);
  using Write = std::function<Outcome<void>(const void* data, size_t length_bytes)>;
  // All of it, and forgets it.
  Outcome<void> drain(const OutFile& file, const Write& write);

 private:
  struct Extent {
    uint64_t offset;
    uint64_t length_bytes;
  };
  std::vector<Extent> extents_;
  std::vector<uint8_t> memory_;
};

class DualRow {
 public:
  struct Block {
    explicit Block(const ListIndexShape& shape) : index(shape) {}
    ListIndexBuilder index;
    SpillableBytes lists;
    SpillableBytes weights;
  };

  // `spill_path` must not exist; the file goes with the row.
  DualRow(const ListIndexShape& shape, uint32_t partitions, std::string spill_path,
          uint64_t memory_bytes_max)
      : shape_(shape),
        partitions_(partitions),
        spill_path_(std::move(spill_path)),
        memory_bytes_max_(memory_bytes_max) {
    clear();
  }
  ~DualRow();
  DualRow(const DualRow&) = delete;
  DualRow& operator=(const DualRow&) = delete;

  // The list of the interval's `vertex`, of `degree` neighbours in the interval `other`.
  void append(uint32_t other, uint32_t vertex, uint64_t degree, std::span<const uint8_t> list,
              std::span<const uint8_t> weights);
  // With groups, append() takes no bytes of a list: they come with the others of its group.
  void append_group(uint32_t other, std::span<const uint8_t> lists, uint64_t arcs);
  // Call it now and then, after some append().
  Outcome<void> keep_limit();

  Block& block(uint32_t other) { return blocks_[other]; }
  const OutFile& spill_file() const { return spill_; }
  void clear();

 private:
  const ListIndexShape shape_;
  const uint32_t partitions_;
  const std::string spill_path_;
  const uint64_t memory_bytes_max_;
  std::vector<Block> blocks_;
  OutFile spill_;
  uint64_t spill_end_ = 0;
  uint64_t memory_bytes_ = 0;
};

}  // namespace graphlane::graphfmt
