#include "iomgr/read/pattern/sequence_predictor.h"

#include <algorithm>

#include "iomgr/base/memory_order.h"

namespace graphlane {

void SequencePredictor::remove_pending(uint32_t index) {
  for (--pending_count_; index < pending_count_; ++index) pending_[index] = pending_[index + 1];
}

// Removes the bytes that are read now from the predictions. Returns how many they were.
uint64_t SequencePredictor::consume(ByteRange range) {
  uint64_t consumed_bytes = 0;
  uint64_t last_number = 0;
  for (uint32_t i = pending_count_; i-- > 0;) {
    ByteRange& pending = pending_[i].range;
    const uint64_t begin = std::max(pending.offset, range.offset);
    const uint64_t end = std::min(pending.end(), range.end());
    if (begin >= end) continue;
    consumed_bytes += end - begin;
    last_number = std::max(last_number, pending_[i].number);
    // The bytes in front of it were skipped.
    unused_bytes_.fetch_add(begin - pending.offset, relaxed);
    pending = {.offset = end, .length_bytes = pending.end() - end};
    if (pending.length_bytes == 0) remove_pending(i);
  }
  while (pending_count_ > 0 && pending_[0].number + kLateMax < last_number) expire_first();
  verdict_.add_right(consumed_bytes);
  used_bytes_.fetch_add(consumed_bytes, relaxed);
  return consumed_bytes;
}

void SequencePredictor::expire_late() {
  while (pending_count_ > 0 && clock_ - pending_[0].at > kPatienceBytes) expire_first();
}

void SequencePredictor::expire_first() {
  verdict_.add_wrong(pending_[0].range.length_bytes);
  unused_bytes_.fetch_add(pending_[0].range.length_bytes, relaxed);
  remove_pending(0);
}

uint64_t SequencePredictor::pending_bytes() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < pending_count_; ++i) bytes += pending_[i].range.length_bytes;
  return bytes;
}

// Cuts off the begin of the range that was predicted already. Whether nothing is left.
bool SequencePredictor::cut_predicted(ByteRange* range) const {
  for (uint32_t i = 0; i < pending_count_; ++i) {
    const ByteRange& pending = pending_[i].range;
    if (pending.offset > range->offset || pending.end() <= range->offset) continue;
    const uint64_t cut = std::min(pending.end() - range->offset, range->length_bytes);
    *range = {.offset = range->offset + cut, .length_bytes = range->length_bytes - cut};
    if (range->length_bytes == 0) return true;
  }
  return false;
}

void SequencePredictor::add_pending(ByteRange range) {
  if (pending_count_ == kPendingMax) expire_first();
  prefetched_bytes_.fetch_add(range.length_bytes, relaxed);
  pending_[pending_count_++] = {.range = range, .at = clock_, .number = ++last_number_};
}

uint64_t SequencePredictor::arrive(const Uuid& file_id, ByteRange range) {
  const PatternDetector::File file{.file_id = file_id};
  const uint64_t place = patterns_.add_step(file, range);
  if (place == 0 || !lock_.lock_patiently()) return 0;
  clock_ += range.length_bytes;
  const uint64_t predicted_bytes = consume({.offset = place, .length_bytes = range.length_bytes});
  expire_late();
  verdict_.judge(kVerdictBytes, clock_);
  lock_.unlock();
  return predicted_bytes;
}

uint32_t SequencePredictor::predict(const Uuid& file_id, ByteRange range, uint64_t size_bytes,
                                    uint64_t bytes_max, std::span<Prediction> next) {
  const PatternDetector::File file{.file_id = file_id};
  Prediction found[kRangesMax];
  const uint32_t found_count = patterns_.predict_files(file, range, size_bytes, found);
  if (!lock_.lock_patiently()) return 0;
  uint64_t room = bytes_max - std::min(bytes_max, pending_bytes());
  if (verdict_.is_paused(clock_)) room = 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < found_count && room > 0 && count < next.size(); ++i) {
    Prediction& wanted = found[i];
    ByteRange places{.offset = wanted.place, .length_bytes = wanted.range.length_bytes};
    if (cut_predicted(&places)) continue;
    // A range prefetched in two pieces costs each disk two seeks.
    if (places.length_bytes > room && (count > 0 || room < bytes_max / 2)) break;
    places.length_bytes = std::min(places.length_bytes, room);
    room -= places.length_bytes;
    add_pending(places);
    next[count++] = {.file_id = wanted.file_id,
                     .range = {.offset = wanted.range.offset + (places.offset - wanted.place),
                               .length_bytes = places.length_bytes},
                     .place = places.offset};
  }
  lock_.unlock();
  return count;
}

PrefetchStats SequencePredictor::stats() const {
  return {.prefetched_bytes = prefetched_bytes_.load(relaxed),
          .used_bytes = used_bytes_.load(relaxed),
          .unused_bytes = unused_bytes_.load(relaxed)};
}

}  // namespace graphlane
