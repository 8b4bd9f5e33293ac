#include "graphfmt/byte_column.h"

#include <algorithm>

#include "iomgr/volume/stub/stripe.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t column_groups(uint64_t count) {
  return (count + ByteColumn::kGroup - 1) / ByteColumn::kGroup;
}

// Takes `length` bytes from the front. nullptr: there are fewer.
const uint8_t* take_front(std::span<const uint8_t>& bytes, uint64_t length) {
  if (bytes.size() < length) return nullptr;
  const uint8_t* const front = bytes.data();
  bytes = bytes.subspan(length);
  return front;
}

}  // namespace

Outcome<ByteColumn> ByteColumn::parse(std::span<const uint8_t>& bytes, uint64_t count,
                                      ColumnStarts starts_kind, const std::string& what,
                                      uint64_t base) {
  const size_t given = bytes.size();
  ByteColumn column;
  column.count_ = count;
  column.values_ = take_front(bytes, round_up(count, kGroup));
  const bool has_starts = starts_kind == ColumnStarts::kStored;
  const uint64_t start_count = has_starts ? column_groups(count) + 1 : 0;
  const uint8_t* const starts = take_front(bytes, start_count * sizeof(uint64_t));
  const uint8_t* const table = take_front(bytes, sizeof(uint64_t));
  const auto cut_short = [&] {
    return make_error(EIO, "{}: byte {}: ends here, in a table of {} lists", what, base + given,
                      count);
  };
  if (column.values_ == nullptr || starts == nullptr || table == nullptr) return cut_short();
  column.starts_ = has_starts ? reinterpret_cast<const uint64_t*>(starts) : nullptr;
  column.table_count_ = *reinterpret_cast<const uint64_t*>(table);
  if (column.table_count_ > count) {
    return make_error(EIO, "{}: byte {}: a table of {} long lists of {}", what,
                      base + given - bytes.size() - 8, column.table_count_, count);
  }
  const uint8_t* const items =
      take_front(bytes, round_up(column.table_count_ * sizeof(uint32_t), 8));
  const uint8_t* const values = take_front(bytes, column.table_count_ * sizeof(uint64_t));
  if (items == nullptr || values == nullptr) return cut_short();
  column.table_items_ = reinterpret_cast<const uint32_t*>(items);
  column.table_values_ = reinterpret_cast<const uint64_t*>(values);
  if (Outcome<void> sound = column.check(what, base, starts_kind); !sound) return sound.error();
  return column;
}

Outcome<void> ByteColumn::check(const std::string& what, uint64_t base, ColumnStarts starts_kind) {
  const bool has_starts = starts_kind == ColumnStarts::kStored;
  const bool derives = starts_kind == ColumnStarts::kDerived;
  if (derives) derived_starts_.reserve(column_groups(count_) + 1);
  const auto bad = [&](const void* at, std::string_view reason) -> Outcome<void> {
    const uint64_t offset = static_cast<uint64_t>(static_cast<const uint8_t*>(at) - values_);
    return make_error(EIO, "{}: byte {}: {}", what, base + offset, reason);
  };
  const size_t hint_count = count_ / kHintItems + 1;
  hints_.reserve(hint_count);
  uint64_t t = 0;
  for (uint64_t first = 0; first < count_; first += kGroup) {
    if (has_starts && starts_[first / kGroup] != total_) {
      return bad(starts_ + first / kGroup, "not the sum of the lists before");
    }
    if (derives) derived_starts_.push_back(total_);
    if (first % kHintItems == 0) hints_.push_back(static_cast<uint32_t>(t));
    const uint64_t end = std::min(first + kGroup, count_);
    uint64_t sum = 0;
    for (uint64_t i = first; i < end; ++i) {
      sum += values_[i];
      if (values_[i] != kInTable) continue;
      if (t == table_count_ || table_items_[t] != i) {
        return bad(values_ + i, "is not in the table of long lists");
      }
      const uint64_t value = table_values_[t];
      if (value < kInTable || value > uint64_t{1} << 48) {
        return bad(table_values_ + t, "not the length of a long list");
      }
      sum += value - kInTable;
      ++t;
    }
    total_ += sum;
    if (total_ > uint64_t{1} << 56) return bad(values_ + first, "the lists are too long");
  }
  if (derives) derived_starts_.push_back(total_);
  if (t != table_count_) return bad(table_items_ + t, "is not a long list");
  if (has_starts && starts_[column_groups(count_)] != total_) {
    return bad(starts_ + column_groups(count_), "not the sum of all lists");
  }
  for (uint64_t i = count_; i < round_up(count_, kGroup); ++i) {
    if (values_[i] != 0) return bad(values_ + i, "what is to be zero is not");
  }
  if (table_count_ % 2 != 0 && table_items_[table_count_] != 0) {
    return bad(table_items_ + table_count_, "what is to be zero is not");
  }
  hints_.resize(hint_count, static_cast<uint32_t>(t));
  return {};
}

void ByteColumnBuilder::append(uint64_t value) {
  const uint64_t item = values_.size();
  if (has_starts_ && item % ByteColumn::kGroup == 0) starts_.push_back(total_);
  total_ += value;
  if (value < ByteColumn::kInTable) {
    values_.push_back(static_cast<uint8_t>(value));
    return;
  }
  values_.push_back(ByteColumn::kInTable);
  table_items_.push_back(static_cast<uint32_t>(item));
  table_values_.push_back(value);
}

void ByteColumnBuilder::append_zeros(uint64_t count) {
  values_.resize(values_.size() + count);
  if (has_starts_) starts_.resize(column_groups(values_.size()), total_);
}

uint64_t ByteColumnBuilder::size_bytes() const {
  const uint64_t start_count = has_starts_ ? starts_.size() + 1 : 0;
  return round_up(values_.size(), ByteColumn::kGroup) + 8 * start_count + 8 +
         round_up(4 * table_items_.size(), 8) + 8 * table_values_.size();
}

uint64_t ByteColumnBuilder::memory_bytes() const {
  return values_.capacity() + starts_.capacity() * 8 + table_items_.capacity() * 4 +
         table_values_.capacity() * 8;
}

Outcome<void> ByteColumnBuilder::write(const Write& write) const {
  static constexpr uint8_t kZeros[ByteColumn::kGroup] = {};
  const auto padded = [&](const void* data, size_t length, size_t unit) -> Outcome<void> {
    if (Outcome<void> done = write(data, length); !done) return done;
    return write(kZeros, round_up(length, unit) - length);
  };
  if (auto done = padded(values_.data(), values_.size(), ByteColumn::kGroup); !done) return done;
  if (has_starts_) {
    if (auto done = write(starts_.data(), starts_.size() * 8); !done) return done;
    if (auto done = write(&total_, sizeof total_); !done) return done;
  }
  const uint64_t table_count = table_items_.size();
  if (auto done = write(&table_count, sizeof table_count); !done) return done;
  if (auto done = padded(table_items_.data(), table_items_.size() * 4, 8); !done) return done;
  return write(table_values_.data(), table_values_.size() * 8);
}

}  // namespace graphlane::graphfmt
