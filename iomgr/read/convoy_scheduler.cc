#include "iomgr/read/convoy_scheduler.h"

#include <algorithm>

namespace graphlane {

// Returns the thread's slot, or takes that of the longest idle reader.
ConvoyScheduler::Reader* ConvoyScheduler::begin(const Uuid& file_id, uint32_t thread,
                                                ByteRange range) {
  if (thread == 0) return nullptr;
  Reader* chosen = nullptr;
  {
    const FutexLockGuard guard(lock_);
    for (Reader& reader : readers_) {
      if (reader.thread == thread) {
        chosen = &reader;
        break;
      }
      const bool is_free = reader.under_way == 0;
      if (is_free && (chosen == nullptr || reader.idle_since_ns < chosen->idle_since_ns)) {
        chosen = &reader;
      }
    }
    if (chosen == nullptr) return nullptr;
    if (chosen->thread != thread) chosen->patience_bytes = kPatienceBytes;
    chosen->thread = thread;
    chosen->file_id = file_id;
    chosen->offset = range.offset;
    ++chosen->under_way;
  }
  asked_bytes_.fetch_add(range.length_bytes, std::memory_order_relaxed);
  // Must precede the load of `waiting_`: a waiter loads the step after it has incremented
  // `waiting_`. Both are sequentially consistent.
  step_.fetch_add(1);
  if (waiting_.load() > 0) futex_wake(step_);
  return chosen;
}

void ConvoyScheduler::end(Reader* reader) {
  if (reader == nullptr) return;
  const FutexLockGuard guard(lock_);
  --reader->under_way;
  reader->idle_since_ns = monotonic_ns();
}

bool ConvoyScheduler::is_first(const Reader& reader, uint64_t offset, uint64_t reach_bytes,
                               uint64_t now_ns) const {
  return std::none_of(std::begin(readers_), std::end(readers_), [&](const Reader& other) {
    return &other != &reader && other.offset < offset && offset - other.offset <= reach_bytes &&
           other.reads(reader.file_id, now_ns);
  });
}

bool ConvoyScheduler::leads(const Reader& reader, uint64_t offset, uint64_t reach_bytes) {
  const uint64_t now = monotonic_ns();
  const FutexLockGuard guard(lock_);
  return is_first(reader, offset, reach_bytes, now);
}

uint32_t ConvoyScheduler::leader_count(const Reader& reader, uint64_t reach_bytes) {
  const uint64_t now = monotonic_ns();
  const FutexLockGuard guard(lock_);
  uint32_t count = 0;
  for (const Reader& each : readers_) {
    if (each.reads(reader.file_id, now) && is_first(each, each.offset, reach_bytes, now)) ++count;
  }
  return count;
}

void ConvoyScheduler::reset_patience(Reader* reader) {
  if (reader == nullptr) return;
  const FutexLockGuard guard(lock_);
  reader->patience_bytes = kPatienceBytes;
}

// Waits until a request after `seen_step`, or an idle reader. False: the patience is used up.
bool ConvoyScheduler::wait(Reader& reader, uint32_t seen_step, uint64_t seen_bytes) {
  const uint64_t begin = monotonic_ns();
  {
    const FutexLockGuard guard(lock_);
    if (reader.patience_bytes == 0) return false;
  }
  waiting_.fetch_add(1);
  futex_wait(step_, seen_step, kIdleNs);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  const uint64_t waited = std::max(asked_bytes_.load(std::memory_order_relaxed) - seen_bytes,
                                   (monotonic_ns() - begin) / kNsPerByte);
  const FutexLockGuard guard(lock_);
  reader.patience_bytes -= std::min(waited, reader.patience_bytes);
  return true;
}

}  // namespace graphlane
