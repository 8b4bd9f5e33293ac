#include "iomgr/read/file_sweeps.h"

#include <algorithm>

#include "iomgr/base/cachestat.h"
#include "iomgr/base/memory_order.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

// One call of fadvise starts no more than a device's longest I/O, or its read-ahead.
constexpr uint64_t kBegunAtOnce = 512 << 10;

}  // namespace

uint64_t prefetch_into_page_cache(const StripeMap& map, std::span<const int> parts,
                                  ByteRange range) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t missing_bytes = 0;
  for (uint32_t d = 0; d < parts.size(); ++d) {
    const ByteRange run = map.run(d, range);
    if (run.length_bytes == 0) continue;
    // Without mincore's answer all pages count as missing. (RWF_NOWAIT would itself read.)
    const auto pages = pages_cached(parts[d], run.offset, run.length_bytes);
    const uint64_t missing = pages ? (pages->all - pages->cached) * page : run.length_bytes;
    missing_bytes += missing;
    for (uint64_t at = run.offset; at < run.end() && missing > 0; at += kBegunAtOnce) {
      (void)sys::fadvise(parts[d], at, std::min(kBegunAtOnce, run.end() - at), POSIX_FADV_WILLNEED);
    }
  }
  return missing_bytes;
}

void drop_from_page_cache(const StripeMap& map, std::span<const int> parts, ByteRange range) {
  for (uint32_t d = 0; d < parts.size(); ++d) {
    const ByteRange run = map.run(d, range);
    if (run.length_bytes == 0) continue;
    (void)sys::fadvise(parts[d], run.offset, run.length_bytes, POSIX_FADV_DONTNEED);
  }
}

bool FileSweeps::is_memory_check_due(uint64_t read_bytes) {
  const auto bytes = static_cast<int64_t>(read_bytes);
  if (unlooked_bytes_.fetch_sub(bytes, relaxed) > bytes) return false;
  unlooked_bytes_.store(kLookBytes, relaxed);
  return true;
}

void FileSweeps::check_memory_soon() { unlooked_bytes_.store(0, relaxed); }

void FileSweeps::set_available(uint64_t available_bytes) { ahead_share_.adjust(available_bytes); }

uint64_t FileSweeps::arrive(const Uuid& file_id, ByteRange step) {
  if (!lock_.lock_patiently()) return 0;
  const uint64_t address = patterns_.add_step({.file_id = file_id}, step);
  PrefetchLedger::Taken taken;
  if (address != 0) {
    ledger_.advance(step.length_bytes);
    taken = ledger_.take({.offset = address, .length_bytes = step.length_bytes});
    count_unused(taken.skipped_bytes + ledger_.expire_skipped(kReorderMax).bytes +
                 ledger_.expire(kPatienceBytes, [](ByteRange) {}).bytes);
    ledger_.judge(kVerdictBytes);
  }
  lock_.unlock();
  used_bytes_.fetch_add(taken.bytes, relaxed);
  return taken.bytes;
}

void FileSweeps::count_unused(uint64_t bytes) { unused_bytes_.fetch_add(bytes, relaxed); }

void FileSweeps::record_use(uint64_t predicted_bytes, uint64_t missing_bytes) {
  ahead_share_.record_use(predicted_bytes, missing_bytes);
}

// Adds what is not in the ledger, in at most `room_bytes`.
FileSweeps::Next FileSweeps::add_new(std::span<const PatternDetector::Prediction> found,
                                     uint64_t room_bytes, uint64_t whole_room_bytes) {
  Next next;
  for (const PatternDetector::Prediction& wanted : found) {
    if (room_bytes == 0 || next.count == Next::kMax) break;
    ByteRange range{.offset = wanted.address, .length_bytes = wanted.range.length_bytes};
    if (ledger_.cut(&range)) continue;
    // A range prefetched in two pieces costs each disk two seeks.
    if (range.length_bytes > room_bytes && (next.count > 0 || room_bytes < whole_room_bytes / 2)) {
      break;
    }
    range.length_bytes = std::min(range.length_bytes, room_bytes);
    room_bytes -= range.length_bytes;
    if (ledger_.is_full()) count_unused(ledger_.expire_first().bytes);
    ledger_.add(range, /*distance_bytes=*/0);
    prefetched_bytes_.fetch_add(range.length_bytes, relaxed);
    next.ranges[next.count++] = {
        .file_id = wanted.file_id,
        .range = {.offset = wanted.range.offset + (range.offset - wanted.address),
                  .length_bytes = range.length_bytes},
        .address = range.offset};
  }
  return next;
}

// The lock is held from the prediction until it is in the ledger, so that no read of it comes between.
FileSweeps::Next FileSweeps::prefetches_after(const Uuid& file_id, ByteRange step,
                                              uint64_t size_bytes) {
  if (!lock_.lock_patiently()) return {};
  const uint64_t most = std::min(ahead_share_.bytes(), std::max(kAheadEnough, step.length_bytes));
  const uint64_t room = most - std::min(most, ledger_.bytes());
  Next next;
  if (room > 0 && !ledger_.is_paused()) {
    PatternDetector::Prediction found[PatternDetector::kRangesMax];
    const uint32_t count = patterns_.predict_files({.file_id = file_id}, step, size_bytes, found);
    next = add_new(std::span(found).first(count), room, most);
  }
  lock_.unlock();
  return next;
}

PrefetchStats FileSweeps::stats() const {
  return {.prefetched_bytes = prefetched_bytes_.load(relaxed),
          .used_bytes = used_bytes_.load(relaxed),
          .unused_bytes = unused_bytes_.load(relaxed)};
}

}  // namespace graphlane
