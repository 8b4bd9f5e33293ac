#include "iomgr/ahead_table.h"

#include <algorithm>

namespace graphlane {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr uint64_t kFrame = kExtentFrameBytes;

}  // namespace

AheadTable::Entry* AheadTable::find(const Uuid& file_id, uint64_t generation) {
  for (Entry& entry : entries_) {
    if (entry.used && entry.file_id == file_id && entry.generation == generation) return &entry;
  }
  return nullptr;
}

// In the place of the one that was not used for longest.
AheadTable::Entry* AheadTable::begin_entry(const ExtentFile& file) {
  Entry* oldest = &entries_[0];
  for (Entry& entry : entries_) {
    if (!entry.used) {
      oldest = &entry;
      break;
    }
    if (clock_ - entry.last_used > clock_ - oldest->last_used) oldest = &entry;
  }
  let_go(*oldest);
  oldest->file_id = file.file_id;
  oldest->generation = file.generation;
  oldest->used = true;
  oldest->clock = oldest->longest = oldest->next_look = 0;
  oldest->passed = oldest->wasted = 0;
  oldest->order.clear();
  return oldest;
}

// Of what is held, that for which it holds. Returns how many.
template <class Predicate>
uint32_t AheadTable::release_if(Entry& entry, Predicate predicate) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < entry.held_count; ++i) {
    if (predicate(entry.held[i])) {
      entry.held[i].pin.release();
      continue;
    }
    if (kept != i) entry.held[kept] = std::move(entry.held[i]);
    ++kept;
  }
  const uint32_t released = entry.held_count - kept;
  entry.held_count = kept;
  return released;
}

void AheadTable::give_up_late(Entry& entry) {
  const uint64_t patience = kPatienceBytes + kLateReads * entry.longest;
  const uint32_t late = release_if(entry, [&](const Held& held) {
    return entry.clock - held.expected_at > patience;
  });
  entry.wasted += late;
  wasted_.fetch_add(late, relaxed);
}

void AheadTable::let_go(Entry& entry) {
  wasted_.fetch_add(entry.held_count, relaxed);
  release_if(entry, [](const Held&) { return true; });
}

// Wrong more often than right: nothing for a while.
void AheadTable::judge(Entry& entry) {
  if (entry.passed + entry.wasted < kJudgedFrames) return;
  if (entry.wasted > entry.passed) entry.next_look = entry.clock + kPauseBytes;
  entry.passed = entry.wasted = 0;
}

void AheadTable::arrive(const ExtentFile& file, ByteRange range) {
  if (!lock_.lock_patiently()) return;
  ++clock_;
  for (Entry& entry : entries_) {
    if (entry.held_count > 0 && clock_ - entry.last_used > kIdleMax) let_go(entry);
  }
  Entry* entry = find(file.file_id, file.generation);
  if (entry == nullptr) entry = begin_entry(file);
  entry->last_used = clock_;
  entry->clock += range.length_bytes;
  entry->longest = std::max(entry->longest - entry->longest / 16, range.length_bytes);
  entry->order.add(range);
  lock_.unlock();
}

void AheadTable::pass(const ExtentFile& file, ByteRange range) {
  if (!lock_.lock_patiently()) return;
  if (Entry* const entry = find(file.file_id, file.generation); entry != nullptr && entry->held_count > 0) {
    const bool to_end = range.end() >= file.size_bytes;
    const uint64_t begin = range.offset / kFrame;
    const uint64_t end = (range.end() + (to_end ? kFrame - 1 : 0)) / kFrame;
    const uint32_t passed = release_if(*entry, [&](const Held& held) {
      return held.frame_index >= begin && held.frame_index < end;
    });
    entry->passed += passed;
    passed_.fetch_add(passed, relaxed);
    give_up_late(*entry);
    judge(*entry);
  }
  lock_.unlock();
}

bool AheadTable::expect(const ExtentFile& file, ByteRange range, bool is_sequential,
                        uint64_t step_bytes, uint64_t reach_bytes, Forecast* forecast) {
  if (!lock_.lock_patiently()) return false;
  Entry* const entry = find(file.file_id, file.generation);
  if (entry != nullptr && entry->clock >= entry->next_look) {
    const uint64_t step = std::max(step_bytes, entry->longest);
    forecast->window_bytes = std::min(2 * step, reach_bytes);
    forecast->step_bytes = forecast->window_bytes / 2;
    // What is in memory already does not count, so there may be more to look at.
    forecast->count = entry->order.expect(range, is_sequential, file.size_bytes, UINT64_MAX,
                                          forecast->ranges);
    entry->next_look = entry->clock + step / 4;
  }
  lock_.unlock();
  return forecast->count > 0;
}

void AheadTable::keep(const FrameKey& key, Pin pin) {
  fetched_.fetch_add(1, relaxed);
  renew(key, std::move(pin));
}

void AheadTable::renew(const FrameKey& key, Pin pin) {
  if (!lock_.lock_patiently()) return;
  if (Entry* const entry = find(key.file_id, key.generation)) {
    Held* const end = entry->held + entry->held_count;
    Held* const held = std::find_if(
        entry->held, end, [&](const Held& each) { return each.frame_index == key.frame_index; });
    if (held != end) {
      held->expected_at = entry->clock;
    } else if (entry->held_count < kAheadMax) {
      ++entry->held_count;
      held->frame_index = key.frame_index;
      held->expected_at = entry->clock;
      held->pin = std::move(pin);
    }
  }
  lock_.unlock();
}

void AheadTable::clear() {
  const FutexLockGuard lock(lock_);
  for (Entry& entry : entries_) let_go(entry);
}

AheadStats AheadTable::stats() const {
  return {.fetched = fetched_.load(relaxed),
          .passed = passed_.load(relaxed),
          .wasted = wasted_.load(relaxed)};
}

}  // namespace graphlane
