#include "iomgr/read/prefetch_tracker.h"

#include <algorithm>

#include "iomgr/base/memory_order.h"
#include "iomgr/base/slot_pool.h"

namespace graphlane {
namespace {

// Also of the last one, which may be shorter.
ByteRange whole_frame(uint64_t frame_index) {
  return {.offset = frame_index * kExtentFrameBytes, .length_bytes = kExtentFrameBytes};
}

}  // namespace

PrefetchTracker::Entry* PrefetchTracker::find(const Uuid& file_id, uint64_t generation) {
  for (Entry& entry : entries_) {
    if (entry.used && entry.file_id == file_id && entry.generation == generation) return &entry;
  }
  return nullptr;
}

PrefetchTracker::Entry* PrefetchTracker::begin_entry(const ExtentFile& file) {
  Entry& entry = unused_or_oldest_slot(entries_, clock_);
  let_go(entry);
  entry.file_id = file.file_id;
  entry.generation = file.generation;
  entry.used = true;
  entry.longest = entry.next_look = 0;
  entry.ledger.reset();
  entry.hint_count = 0;
  return &entry;
}

PrefetchTracker::Entry* PrefetchTracker::use(const ExtentFile& file) {
  ++clock_;
  for (Entry& entry : entries_) {
    if (!entry.ledger.is_empty() && clock_ - entry.last_used > kIdleMax) let_go(entry);
  }
  Entry* entry = find(file.file_id, file.generation);
  if (entry == nullptr) entry = begin_entry(file);
  entry->last_used = clock_;
  return entry;
}

// Cuts the range off the begin or the end of the hints: it was read, or given up.
void PrefetchTracker::cut_hints(Entry& entry, ByteRange range) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < entry.hint_count; ++i) {
    uint64_t begin = entry.hints[i].offset, end = entry.hints[i].end();
    if (range.offset <= begin) {
      begin = std::max(begin, range.end());
    } else if (range.end() >= end) {
      end = std::min(end, range.offset);
    }
    if (begin < end) entry.hints[kept++] = {.offset = begin, .length_bytes = end - begin};
  }
  entry.hint_count = kept;
}

void PrefetchTracker::expire_late(Entry& entry) {
  const uint64_t patience = kPatienceBytes + kLateReads * entry.longest;
  const PrefetchLedger::Expired late =
      entry.ledger.expire(patience, [&](ByteRange frame) { cut_hints(entry, frame); });
  unused_.fetch_add(late.items, relaxed);
}

void PrefetchTracker::let_go(Entry& entry) { unused_.fetch_add(entry.ledger.clear(), relaxed); }

void PrefetchTracker::begin_read(const ExtentFile& file, ByteRange range) {
  (void)patterns_.add_step(pattern_file(file), range);
  if (!lock_.lock_patiently()) return;
  Entry* const entry = use(file);
  entry->ledger.advance(range.length_bytes);
  entry->longest = std::max(entry->longest - entry->longest / 16, range.length_bytes);
  cut_hints(*entry, range);
  lock_.unlock();
}

// A frame is used once a read has passed its end.
void PrefetchTracker::end_read(const ExtentFile& file, ByteRange range) {
  if (!lock_.lock_patiently()) return;
  Entry* const entry = find(file.file_id, file.generation);
  if (entry != nullptr && !entry->ledger.is_empty()) {
    const bool to_end = range.end() >= file.size_bytes;
    const uint64_t begin = range.offset / kExtentFrameBytes;
    const uint64_t end = (range.end() + (to_end ? kExtentFrameBytes - 1 : 0)) / kExtentFrameBytes;
    const PrefetchLedger::Taken used = entry->ledger.take(
        {.offset = begin * kExtentFrameBytes, .length_bytes = (end - begin) * kExtentFrameBytes});
    used_.fetch_add(used.items, relaxed);
    expire_late(*entry);
    entry->ledger.judge(kVerdictBytes);
  }
  lock_.unlock();
}

bool PrefetchTracker::predict(const ExtentFile& file, ByteRange range, bool is_sequential,
                              bool urgent, uint64_t step_bytes, uint64_t reach_bytes,
                              Forecast* forecast) {
  if (!lock_.lock_patiently()) return false;
  Entry* const entry = find(file.file_id, file.generation);
  const bool looks = entry != nullptr && !entry->ledger.is_paused() &&
                     (urgent || entry->ledger.clock() >= entry->next_look);
  if (looks) {
    const uint64_t step = std::max(step_bytes, entry->longest);
    forecast->window_bytes = std::min(2 * step, reach_bytes);
    forecast->step_bytes = forecast->window_bytes / 2;
    forecast->count = entry->hint_count;
    std::copy_n(entry->hints, entry->hint_count, forecast->ranges);
    entry->next_look = entry->ledger.clock() + step / 4;
  }
  lock_.unlock();
  if (!looks) return false;
  // More than the window, because frames in memory do not count towards it.
  forecast->count +=
      patterns_.predict_file(pattern_file(file), range, is_sequential, file.size_bytes,
                             std::span(forecast->ranges).subspan(forecast->count));
  return forecast->count > 0;
}

void PrefetchTracker::hint(const ExtentFile& file, ByteRange range, uint64_t reach_bytes,
                           Forecast* forecast) {
  *forecast = {
      .window_bytes = std::min(round_up(range.length_bytes + kExtentFrameBytes, kExtentFrameBytes),
                               reach_bytes),
      .count = 1,
      .ranges = {range}};
  if (!lock_.lock_patiently()) return;
  Entry* const entry = use(file);
  if (entry->hint_count < kHintsMax) entry->hints[entry->hint_count++] = range;
  lock_.unlock();
}

void PrefetchTracker::add(const FrameKey& key, uint64_t distance_bytes, Pin pin) {
  if (!lock_.lock_patiently()) return;
  Entry* const entry = find(key.file_id, key.generation);
  const ByteRange frame = whole_frame(key.frame_index);
  if (entry != nullptr && !entry->ledger.is_full() && entry->ledger.find(frame.offset) == nullptr) {
    entry->ledger.add(frame, distance_bytes, std::move(pin));
  }
  lock_.unlock();
}

// A reader that waited for the frame may have passed it already.
void PrefetchTracker::complete(const FrameKey& key, Pin pin) {
  fetched_.fetch_add(1, relaxed);
  if (!lock_.lock_patiently()) return;
  if (Entry* const entry = find(key.file_id, key.generation)) {
    PrefetchLedger::Item* const item = entry->ledger.find(whole_frame(key.frame_index).offset);
    if (item != nullptr) item->pin = std::move(pin);
  }
  lock_.unlock();
}

void PrefetchTracker::clear() {
  const FutexLockGuard lock(lock_);
  for (Entry& entry : entries_) let_go(entry);
}

AheadStats PrefetchTracker::stats() const {
  return {.fetched = fetched_.load(relaxed),
          .used = used_.load(relaxed),
          .unused = unused_.load(relaxed)};
}

}  // namespace graphlane
