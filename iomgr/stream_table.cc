#include "iomgr/stream_table.h"

#include <algorithm>

namespace graphlane {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace

bool StreamTable::Stream::is_near(ByteRange range) const {
  const uint64_t slack = kSlackReads * range.length_bytes;
  return range.end() + slack >= begin && range.offset <= end + slack;
}

// Where the sweep is: other threads' reads come a little later or sooner. From far off, or at
// the begin again, it is the next one.
void StreamTable::Stream::move_front(ByteRange range) {
  longest = std::max(longest - longest / 16, range.length_bytes);
  const uint64_t distance = std::max(front, range.offset) - std::min(front, range.offset);
  const uint64_t near = range.offset == begin ? 2 : kSlackReads;
  if (distance <= near * range.length_bytes) {
    front = std::max(front, range.end());
  } else {
    front = range.end();
    ahead_end = 0;
  }
}

void StreamTable::Stream::extend(ByteRange range) {
  if (range.offset == begin && range.end() == end) return;  // once more
  begin = std::min(begin, range.offset);
  end = std::max(end, range.end());
  asked_bytes += range.length_bytes;
  ++read_count;
  if (end - begin > kSpanMax) {
    asked_bytes = asked_bytes / 2;
    begin = end - (end - begin) / 2;
  }
}

// Of those that are near, the one whose end is nearest.
StreamTable::Stream* StreamTable::find(const Uuid& file_id, uint64_t generation,
                                       ByteRange range) {
  Stream* nearest = nullptr;
  uint64_t nearest_distance = 0;
  for (Stream& stream : streams_) {
    if (stream.serial == 0 || stream.file_id != file_id || stream.generation != generation ||
        !stream.is_near(range)) {
      continue;
    }
    const uint64_t distance = std::max(stream.end, range.offset) - std::min(stream.end, range.offset);
    if (nearest != nullptr && distance >= nearest_distance) continue;
    nearest = &stream;
    nearest_distance = distance;
  }
  return nearest;
}

// In the place of the one that was not used for longest.
StreamTable::Stream* StreamTable::begin_stream(const Uuid& file_id, uint64_t generation,
                                               ByteRange range) {
  Stream* oldest = &streams_[0];
  for (Stream& stream : streams_) {
    if (stream.serial == 0) {
      oldest = &stream;
      break;
    }
    if (clock_ - stream.last_used > clock_ - oldest->last_used) oldest = &stream;
  }
  let_go(*oldest);
  oldest->file_id = file_id;
  oldest->generation = generation;
  oldest->begin = range.offset;
  oldest->end = range.offset;
  oldest->longest = 0;
  oldest->front = range.offset;
  oldest->ahead_end = 0;
  oldest->asked_bytes = 0;
  oldest->read_count = 0;
  if (++last_serial_ == 0) ++last_serial_;
  oldest->serial = last_serial_;
  return oldest;
}

// A read is done with the frames [begin, end).
void StreamTable::pass(Stream& stream, uint64_t begin, uint64_t end) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < stream.held_count; ++i) {
    if (stream.held_index[i] >= begin && stream.held_index[i] < end) {
      stream.held[i].release();
      passed_.fetch_add(1, relaxed);
      continue;
    }
    if (kept != i) {
      stream.held_index[kept] = stream.held_index[i];
      stream.held[kept] = std::move(stream.held[i]);
    }
    ++kept;
  }
  stream.held_count = kept;
}

void StreamTable::let_go(Stream& stream) {
  wasted_.fetch_add(stream.held_count, relaxed);
  for (uint32_t i = 0; i < stream.held_count; ++i) stream.held[i].release();
  stream.held_count = 0;
}

void StreamTable::let_go_of_idle() {
  for (Stream& stream : streams_) {
    if (stream.held_count > 0 && clock_ - stream.last_used > kIdleMax) let_go(stream);
  }
}

StreamTable::Advice StreamTable::observe(const Uuid& file_id, uint64_t generation,
                                         ByteRange range, uint64_t quantum_bytes,
                                         uint64_t ahead_max_bytes) {
  Advice advice{.fetch_end = range.end()};
  if (!lock_.lock_patiently()) return advice;
  ++clock_;
  let_go_of_idle();
  Stream* stream = find(file_id, generation, range);
  if (stream == nullptr) stream = begin_stream(file_id, generation, range);
  stream->last_used = clock_;
  stream->move_front(range);
  stream->extend(range);
  // What other threads are still to ask for lies behind this read, within the slack of
  // a request or two.
  const uint64_t behind = std::min(range.offset, 2 * range.length_bytes);
  pass(*stream, 0, (range.offset - behind) / kExtentFrameBytes);
  if (stream->is_dense()) {
    advice.fetch_end = std::min(round_up(range.end(), quantum_bytes),
                                range.end() + ahead_max_bytes);
    advice.stream = static_cast<uint32_t>(stream - streams_);
    advice.serial = stream->serial;
  }
  lock_.unlock();
  return advice;
}

ByteRange StreamTable::next_ahead(const Advice& advice, ByteRange range, uint64_t step_bytes,
                                  uint64_t reach_bytes) {
  ByteRange next;
  if (!lock_.lock_patiently()) return next;
  Stream& stream = streams_[advice.stream];
  if (stream.serial == advice.serial) {
    pass(stream, range.offset / kExtentFrameBytes, range.end() / kExtentFrameBytes);
    const uint64_t step = std::max(step_bytes, stream.longest);
    const uint64_t begin = std::max(stream.front, stream.ahead_end);
    const uint64_t end = stream.front + std::min(2 * step, reach_bytes);
    if (begin + std::min(step, reach_bytes) <= end) {
      next = {.offset = begin, .length_bytes = end - begin};
      stream.ahead_end = end;
    }
  }
  lock_.unlock();
  return next;
}

void StreamTable::keep(const Advice& advice, uint64_t frame_index, Pin pin) {
  fetched_.fetch_add(1, relaxed);
  if (!lock_.lock_patiently()) return;
  Stream& stream = streams_[advice.stream];
  if (stream.serial == advice.serial && stream.held_count < kAheadMax) {
    stream.held_index[stream.held_count] = frame_index;
    stream.held[stream.held_count++] = std::move(pin);
  }
  lock_.unlock();
}

void StreamTable::clear() {
  const FutexLockGuard lock(lock_);
  for (Stream& stream : streams_) let_go(stream);
}

AheadStats StreamTable::stats() const {
  return {.fetched = fetched_.load(relaxed),
          .passed = passed_.load(relaxed),
          .wasted = wasted_.load(relaxed)};
}

}  // namespace graphlane
