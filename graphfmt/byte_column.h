// ByteColumn: one number for each of many items, most of them below 255, in a byte each; and where
// wanted the sum of all before an item.
//
//   value     b b b 255 b b …      a byte each; 255: the number is in the table
//   starts    S0        S1   …     the sum before every 32nd item, and of all
//   table     (item, number) of each that is 255 or more, ascending
//
// In bytes, little endian: values, padded to a multiple of 32; then starts, uint64 each, if they
// are stored. The table follows: its count, uint64; its items, uint32 each, padded to a multiple of
// 8; its numbers, uint64 each.
//
// Threads: does not change once it is parsed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "iomgr/base/error.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace graphlane::graphfmt {

// Whether a column has starts. Derived: only in memory, computed when it is parsed.
enum class ColumnStarts { kNone, kStored, kDerived };

class ByteColumn {
 public:
  static constexpr uint64_t kGroup = 32;
  static constexpr uint8_t kInTable = 255;

  ByteColumn() = default;

  // Takes the column of `count` items from the front of `bytes`, which starts at a multiple of 8
  // and outlives the column. Checks that the parts agree. Errors call it `what`, at byte `base` +
  // place of a file.
  static Outcome<ByteColumn> parse(std::span<const uint8_t>& bytes, uint64_t count,
                                   ColumnStarts starts, const std::string& what, uint64_t base);

  uint64_t count() const { return count_; }
  uint64_t operator[](uint64_t item) const {
    const uint8_t value = values_[item];
    return value != kInTable ? value : table_values_[table_from(item)];
  }
  // The sum of all before `item`, which may be count(). Only with starts.
  uint64_t sum_before(uint64_t item) const {
    const uint64_t first = item / kGroup * kGroup;
    return starts()[item / kGroup] + sum(first, item);
  }
  uint64_t total() const { return total_; }
  uint64_t table_count() const { return table_count_; }

 private:
  // The sum of [first, end), within a group.
  uint64_t sum(uint64_t first, uint64_t end) const;
  // How many of the first `count` items of the group are in the table.
  uint64_t long_in(uint64_t group, uint64_t count) const;
  // The place in the table where the items from `item` on begin.
  uint64_t table_from(uint64_t item) const;
  // The excess of `count` items' numbers over the 255 that stand for them, from `first` up to
  // `end`.
  uint64_t excess(uint64_t first, uint64_t end) const;
  const uint64_t* starts() const { return starts_ != nullptr ? starts_ : derived_starts_.data(); }
  Outcome<void> check(const std::string& what, uint64_t base, ColumnStarts starts);

  static constexpr uint64_t kHintItems = 128;
#if defined(__SSE2__)
  // From kMask + kGroup - n on: n bytes that are set, and then none. The values are padded, so that
  // a whole group can be loaded.
  alignas(32) static constexpr uint8_t kMask[2 * kGroup] = {
      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
  static __m128i load(const uint8_t* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  }
#endif

  uint64_t count_ = 0;
  uint64_t total_ = 0;
  uint64_t table_count_ = 0;
  const uint8_t* values_ = nullptr;
  const uint64_t* starts_ = nullptr;  // that are stored
  std::vector<uint64_t> derived_starts_;
  const uint32_t* table_items_ = nullptr;
  const uint64_t* table_values_ = nullptr;
  std::vector<uint32_t> hints_;  // table_from() of every 128th item
};

// Makes a column, item after item.
class ByteColumnBuilder {
 public:
  explicit ByteColumnBuilder(bool has_starts) : has_starts_(has_starts) {}

  void append(uint64_t value);
  void append_zeros(uint64_t count);
  uint64_t count() const { return values_.size(); }
  uint64_t total() const { return total_; }
  uint64_t size_bytes() const;
  uint64_t memory_bytes() const;

  using Write = std::function<Outcome<void>(const void* data, size_t length_bytes)>;
  Outcome<void> write(const Write& write) const;

 private:
  const bool has_starts_;
  uint64_t total_ = 0;
  std::vector<uint8_t> values_;
  std::vector<uint64_t> starts_;
  std::vector<uint32_t> table_items_;
  std::vector<uint64_t> table_values_;
};

inline uint64_t ByteColumn::long_in(uint64_t group, uint64_t count) const {
  const uint8_t* const values = values_ + group * kGroup;  // padded to whole groups
#if defined(__SSE2__)
  const uint8_t* const mask = kMask + kGroup - count;
  const auto longs = [&](uint64_t at) {
    const __m128i is_long = _mm_cmpeq_epi8(load(values + at), _mm_set1_epi8(-1));
    return _mm_sub_epi8(_mm_setzero_si128(), _mm_and_si128(is_long, load(mask + at)));
  };
  const __m128i counts = _mm_sad_epu8(_mm_add_epi8(longs(0), longs(16)), _mm_setzero_si128());
  return static_cast<uint64_t>(_mm_cvtsi128_si64(counts) +
                               _mm_cvtsi128_si64(_mm_unpackhi_epi64(counts, counts)));
#else
  return static_cast<uint64_t>(std::count(values, values + count, kInTable));
#endif
}

inline uint64_t ByteColumn::table_from(uint64_t item) const {
  uint64_t from = hints_[item / kHintItems];
  for (uint64_t group = item / kHintItems * (kHintItems / kGroup); group < item / kGroup; ++group) {
    from += long_in(group, kGroup);
  }
  return item % kGroup == 0 ? from : from + long_in(item / kGroup, item % kGroup);
}

inline uint64_t ByteColumn::excess(uint64_t first, uint64_t end) const {
  uint64_t more = 0;
  for (uint64_t t = table_from(first); t < table_count_ && table_items_[t] < end; ++t) {
    more += table_values_[t] - kInTable;
  }
  return more;
}

inline uint64_t ByteColumn::sum(uint64_t first, uint64_t end) const {
#if defined(__SSE2__)
  if (first == end) return 0;
  const uint8_t* const mask = kMask + kGroup - (end - first);
  const __m128i low = _mm_and_si128(load(values_ + first), load(mask));
  const __m128i high = _mm_and_si128(load(values_ + first + 16), load(mask + 16));
  const __m128i zero = _mm_setzero_si128();
  const __m128i sums = _mm_add_epi64(_mm_sad_epu8(low, zero), _mm_sad_epu8(high, zero));
  const __m128i all = _mm_set1_epi8(-1);
  const bool has_long =
      _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(low, all), _mm_cmpeq_epi8(high, all))) != 0;
  const uint64_t sum = static_cast<uint64_t>(_mm_cvtsi128_si64(sums)) +
                       static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums)));
#else
  uint64_t sum = 0;
  bool has_long = false;
  for (uint64_t i = first; i < end; ++i) {
    sum += values_[i];
    has_long |= values_[i] == kInTable;
  }
#endif
  return has_long ? sum + excess(first, end) : sum;
}

}  // namespace graphlane::graphfmt
