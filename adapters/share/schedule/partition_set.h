// PartitionSet: a set of a graph's partitions, or of its units (units.h), one bit each.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace graphlane::share {

class PartitionSet {
 public:
  explicit PartitionSet(uint32_t partition_count = 0, bool all = false)
      : partition_count_(partition_count),
        words_((partition_count + 63) / 64, all ? ~uint64_t{0} : 0) {
    clear_tail();
  }
  // Bits beyond the last partition are ignored.
  PartitionSet(uint32_t partition_count, std::span<const uint64_t> words)
      : partition_count_(partition_count), words_(words.begin(), words.end()) {
    words_.resize((partition_count + 63) / 64);
    clear_tail();
  }

  friend bool operator==(const PartitionSet&, const PartitionSet&) = default;

  uint32_t partition_count() const { return partition_count_; }
  std::span<const uint64_t> words() const { return words_; }

  // The first member from `p` on; partition_count(): none.
  uint32_t next(uint32_t p) const {
    for (size_t i = p / 64; i < words_.size(); ++i) {
      const uint64_t word = i == p / 64 ? words_[i] & ~uint64_t{0} << p % 64 : words_[i];
      if (word != 0) {
        return static_cast<uint32_t>(i * 64) + static_cast<uint32_t>(std::countr_zero(word));
      }
    }
    return partition_count_;
  }

  bool has(uint32_t p) const { return (words_[p / 64] >> p % 64 & 1) != 0; }
  void add(uint32_t p) { words_[p / 64] |= uint64_t{1} << p % 64; }
  void remove(uint32_t p) { words_[p / 64] &= ~(uint64_t{1} << p % 64); }
  void add_all(const PartitionSet& other) {
    assert(other.partition_count_ == partition_count_);
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void remove_all(const PartitionSet& other) {
    assert(other.partition_count_ == partition_count_);
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }

  bool empty() const {
    for (const uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  uint32_t count() const {
    uint32_t count = 0;
    for (const uint64_t word : words_) count += static_cast<uint32_t>(std::popcount(word));
    return count;
  }

 private:
  void clear_tail() {
    if (partition_count_ % 64 != 0) words_.back() &= (uint64_t{1} << partition_count_ % 64) - 1;
  }

  uint32_t partition_count_;
  std::vector<uint64_t> words_;
};

}  // namespace graphlane::share
