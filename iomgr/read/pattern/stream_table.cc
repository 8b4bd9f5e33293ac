#include "iomgr/read/pattern/stream_table.h"

#include <algorithm>

#include "iomgr/base/slot_pool.h"

namespace graphlane {

bool StreamTable::Stream::is_near(ByteRange range) const {
  const uint64_t slack = kSlackReads * range.length_bytes;
  return range.end() + slack >= begin && range.offset <= end + slack;
}

void StreamTable::Stream::extend(ByteRange range) {
  if (range.offset == begin && range.end() == end) return;  // a repeated read
  begin = std::min(begin, range.offset);
  end = std::max(end, range.end());
  asked_bytes += range.length_bytes;
  ++read_count;
  if (end - begin > kSpanMax) {
    asked_bytes = asked_bytes / 2;
    begin = end - (end - begin) / 2;
  }
}

// The stream with the nearest end, among those within reach.
StreamTable::Stream* StreamTable::find(const Uuid& file_id, uint64_t generation, ByteRange range) {
  Stream* nearest = nullptr;
  uint64_t nearest_distance = 0;
  for (Stream& stream : streams_) {
    if (!stream.used || stream.file_id != file_id || stream.generation != generation ||
        !stream.is_near(range)) {
      continue;
    }
    const uint64_t distance =
        std::max(stream.end, range.offset) - std::min(stream.end, range.offset);
    if (nearest != nullptr && distance >= nearest_distance) continue;
    nearest = &stream;
    nearest_distance = distance;
  }
  return nearest;
}

StreamTable::Stream* StreamTable::begin_stream(const Uuid& file_id, uint64_t generation,
                                               ByteRange range) {
  Stream& stream = unused_or_oldest_slot(streams_, clock_);
  stream = {.file_id = file_id,
            .generation = generation,
            .begin = range.offset,
            .end = range.offset,
            .used = true};
  return &stream;
}

StreamTable::Advice StreamTable::observe(const Uuid& file_id, uint64_t generation, ByteRange range,
                                         uint64_t quantum_bytes, uint64_t ahead_max_bytes) {
  Advice advice{.fetch_end = range.end()};
  if (!lock_.lock_patiently()) return advice;
  ++clock_;
  Stream* stream = find(file_id, generation, range);
  if (stream == nullptr) stream = begin_stream(file_id, generation, range);
  stream->last_used = clock_;
  stream->extend(range);
  advice.is_stream = stream->is_dense();
  lock_.unlock();
  if (advice.is_stream) {
    advice.fetch_end =
        std::min(round_up(range.end(), quantum_bytes), range.end() + ahead_max_bytes);
  }
  return advice;
}

}  // namespace graphlane
