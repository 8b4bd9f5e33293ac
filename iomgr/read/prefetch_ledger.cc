#include "iomgr/read/prefetch_ledger.h"

#include <algorithm>
#include <utility>

namespace graphlane {

uint64_t PrefetchLedger::bytes() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count_; ++i) bytes += items_[i].range.length_bytes;
  return bytes;
}

PrefetchLedger::Item* PrefetchLedger::find(uint64_t offset) {
  Item* const end = items_ + count_;
  Item* const found =
      std::find_if(items_, end, [&](const Item& item) { return item.range.offset == offset; });
  return found != end ? found : nullptr;
}

bool PrefetchLedger::cut(ByteRange* range) const {
  for (uint32_t i = 0; i < count_ && range->length_bytes > 0; ++i) {
    const ByteRange& known = items_[i].range;
    if (known.offset > range->offset || known.end() <= range->offset) continue;
    const uint64_t length = std::min(known.end() - range->offset, range->length_bytes);
    *range = {.offset = range->offset + length, .length_bytes = range->length_bytes - length};
  }
  return range->length_bytes == 0;
}

void PrefetchLedger::add(ByteRange range, uint64_t distance_bytes, Pin pin) {
  items_[count_++] = {.range = range,
                      .due = clock_ + distance_bytes,
                      .number = ++last_number_,
                      .pin = std::move(pin)};
}

PrefetchLedger::Taken PrefetchLedger::take(ByteRange range) {
  Taken taken;
  taken.items = remove_if([&](Item& item) {
                  const uint64_t begin = std::max(item.range.offset, range.offset);
                  const uint64_t end = std::min(item.range.end(), range.end());
                  if (begin >= end) return false;
                  taken.bytes += end - begin;
                  taken.skipped_bytes += begin - item.range.offset;
                  taken_number_ = std::max(taken_number_, item.number);
                  item.range = {.offset = end, .length_bytes = item.range.end() - end};
                  return item.range.length_bytes == 0;
                }).items;
  used_bytes_ += taken.bytes;
  return taken;
}

PrefetchLedger::Expired PrefetchLedger::expire_first() {
  const uint64_t oldest = items_[0].number;
  return expire_if([&](const Item& item) { return item.number == oldest; });
}

void PrefetchLedger::judge(uint64_t enough_bytes) {
  if (used_bytes_ + unused_bytes_ < enough_bytes) return;
  if (unused_bytes_ > used_bytes_) paused_until_ = clock_ + kPauseBytes;
  used_bytes_ = unused_bytes_ = 0;
}

uint32_t PrefetchLedger::clear() {
  return remove_if([](const Item&) { return true; }).items;
}

void PrefetchLedger::reset() {
  (void)clear();
  clock_ = paused_until_ = used_bytes_ = unused_bytes_ = last_number_ = taken_number_ = 0;
}

}  // namespace graphlane
