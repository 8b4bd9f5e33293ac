#include "iomgr/read/pattern/stream_table.h"

#include <algorithm>

#include "iomgr/base/slot_pool.h"

namespace graphlane {

// The stream with the nearest end, among those within reach.
StreamTable::Stream* StreamTable::find(const Uuid& file_id, uint64_t generation, ByteRange range) {
  const uint64_t slack_bytes = kSlackReads * range.length_bytes;
  Stream* nearest = nullptr;
  uint64_t nearest_distance = 0;
  for (Stream& stream : streams_) {
    if (!stream.used || stream.file_id != file_id || stream.generation != generation ||
        !stream.reads.is_near(range, slack_bytes)) {
      continue;
    }
    const uint64_t end = stream.reads.end();
    const uint64_t distance = std::max(end, range.offset) - std::min(end, range.offset);
    if (nearest != nullptr && distance >= nearest_distance) continue;
    nearest = &stream;
    nearest_distance = distance;
  }
  return nearest;
}

StreamTable::Stream* StreamTable::begin_stream(const Uuid& file_id, uint64_t generation,
                                               ByteRange range) {
  Stream& stream = unused_or_oldest_slot(streams_, clock_);
  stream = {.file_id = file_id, .generation = generation, .reads = {}, .used = true};
  stream.reads.restart(range);
  return &stream;
}

StreamTable::Advice StreamTable::observe(const Uuid& file_id, uint64_t generation, ByteRange range,
                                         uint64_t quantum_bytes, uint64_t ahead_max_bytes) {
  Advice advice{.fetch_end = range.end()};
  if (!lock_.lock_patiently()) return advice;
  ++clock_;
  Stream* stream = find(file_id, generation, range);
  if (stream != nullptr) {
    stream->reads.extend(range);
  } else {
    stream = begin_stream(file_id, generation, range);
  }
  stream->last_used = clock_;
  advice.is_stream = stream->reads.is_dense(kReadsMin);
  lock_.unlock();
  if (advice.is_stream) {
    advice.fetch_end =
        std::min(round_up(range.end(), quantum_bytes), range.end() + ahead_max_bytes);
  }
  return advice;
}

}  // namespace graphlane
