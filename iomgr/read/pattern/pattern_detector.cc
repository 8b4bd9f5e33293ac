#include "iomgr/read/pattern/pattern_detector.h"

#include <algorithm>

#include "iomgr/base/slot_pool.h"

namespace graphlane {
namespace {

constexpr ByteRange kEverywhere{.offset = 0, .length_bytes = UINT64_MAX};

}  // namespace

// ---- the address space

void PatternDetector::forget_all() {
  order_.clear();
  for (Slot& slot : slots_) slot.used = false;
  for (Stream& stream : streams_) stream.used = false;
  last_base_ = 0;
}

// The file's slot. A new file replaces the least recently read one, at a new base, so that what is
// known of the replaced file matches no file.
const PatternDetector::Slot& PatternDetector::use(const File& file) {
  ++clock_;
  Slot* slot = &slots_[newest_];
  if (!slot->used || slot->file != file) {
    slot = std::find_if(std::begin(slots_), std::end(slots_),
                        [&](const Slot& each) { return each.used && each.file == file; });
  }
  if (slot == std::end(slots_)) {
    if (last_base_ > UINT64_MAX - 2 * kFileSpan) forget_all();
    last_base_ += kFileSpan;
    slot = &unused_or_oldest_slot(slots_, clock_);
    *slot = {.file = file, .base = last_base_, .used = true};
  }
  slot->last_used = clock_;
  newest_ = static_cast<uint32_t>(slot - slots_);
  return *slot;
}

const PatternDetector::Slot* PatternDetector::slot_at(uint64_t address) const {
  const Slot* const found = std::find_if(
      std::begin(slots_), std::end(slots_),
      [&](const Slot& each) { return each.used && address / kFileSpan == each.base / kFileSpan; });
  return found != std::end(slots_) ? found : nullptr;
}

// ---- streams

// The stream with the nearest end, among those within reach.
PatternDetector::Stream* PatternDetector::find_stream(ByteRange range) {
  const uint64_t slack_bytes = kSlackReads * range.length_bytes;
  Stream* nearest = nullptr;
  uint64_t nearest_distance = 0;
  for (Stream& stream : streams_) {
    if (!stream.used || !stream.reads.is_near_end(range, slack_bytes)) continue;
    const uint64_t end = stream.reads.end();
    const uint64_t distance = std::max(end, range.offset) - std::min(end, range.offset);
    if (nearest != nullptr && distance >= nearest_distance) continue;
    nearest = &stream;
    nearest_distance = distance;
  }
  return nearest;
}

bool PatternDetector::observe(const File& file, ByteRange range) {
  if (range.end() > kFileBytesMax || !lock_.lock_patiently()) return false;
  range.offset += use(file).base;
  Stream* stream = find_stream(range);
  if (stream != nullptr) {
    stream->reads.extend(range);
  } else {
    stream = &unused_or_oldest_slot(streams_, clock_);
    *stream = {.reads = {}, .used = true};
    stream->reads.restart(range);
  }
  stream->last_used = clock_;
  const bool is_dense = stream->reads.is_dense(kReadsMin);
  lock_.unlock();
  return is_dense;
}

// ---- the order

uint64_t PatternDetector::add_step(const File& file, ByteRange step) {
  if (step.end() > kFileBytesMax || !lock_.lock_patiently()) return 0;
  const uint64_t base = use(file).base;
  step.offset += base;
  order_.add(step, run_end_ == RunEnd::kInFile ? ByteRange{base, kFileBytesMax} : kEverywhere);
  lock_.unlock();
  return step.offset;
}

uint32_t PatternDetector::predict_file(const File& file, ByteRange step, bool is_sequential,
                                       uint64_t size_bytes, std::span<ByteRange> next) {
  if (step.end() > kFileBytesMax || !lock_.lock_patiently()) return 0;
  const uint64_t base = use(file).base;
  step.offset += base;
  const ByteRange scope{.offset = base, .length_bytes = std::min(size_bytes, kFileBytesMax)};
  const auto guess = is_sequential ? ReadOrder::Guess::kSequential : ReadOrder::Guess::kStride;
  const uint32_t count = order_.predict(step, guess, scope, next);
  lock_.unlock();
  for (ByteRange& range : next.first(count)) range.offset -= base;
  return count;
}

// A window of a shard belongs to a stream, but other shards come next. So the bytes behind a step
// are guessed only if those before it were just read.
uint32_t PatternDetector::predict_files(const File& file, ByteRange step, uint64_t size_bytes,
                                        std::span<Prediction> next) {
  if (step.end() > kFileBytesMax || !lock_.lock_patiently()) return 0;
  const uint64_t base = use(file).base;
  step.offset += base;
  ByteRange ranges[kRangesMax];
  const auto room = std::span(ranges).first(std::min<size_t>(kRangesMax, next.size()));
  const auto guess = size_bytes > 0 ? ReadOrder::Guess::kContinued : ReadOrder::Guess::kNone;
  const uint32_t found = order_.predict(step, guess, kEverywhere, room);
  uint32_t count = 0;
  for (const ByteRange& range : room.first(found)) {
    const Slot* const slot = slot_at(range.offset);
    if (slot == nullptr) continue;
    const bool is_limited = size_bytes > 0 && slot->base == base;
    const uint64_t end = is_limited ? std::min(base + size_bytes, range.end()) : range.end();
    if (range.offset >= end) continue;
    next[count++] = {
        .file_id = slot->file.file_id,
        .range = {.offset = range.offset - slot->base, .length_bytes = end - range.offset},
        .address = range.offset};
  }
  lock_.unlock();
  return count;
}

}  // namespace graphlane
