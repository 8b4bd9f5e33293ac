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

uint64_t begin_in_page_cache(const StripeMap& map, std::span<const int> parts, ByteRange range) {
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

bool FileSweeps::is_look_due(uint64_t read_bytes) {
  const auto bytes = static_cast<int64_t>(read_bytes);
  if (unlooked_bytes_.fetch_sub(bytes, relaxed) > bytes) return false;
  unlooked_bytes_.store(kLookBytes, relaxed);
  return true;
}

void FileSweeps::look_soon() { unlooked_bytes_.store(0, relaxed); }

void FileSweeps::set_available(uint64_t available_bytes) { ahead_share_.adjust(available_bytes); }

uint64_t FileSweeps::arrive(const Uuid& file_id, ByteRange step) {
  const uint64_t place = patterns_.add_step({.file_id = file_id}, step);
  if (place == 0 || !lock_.lock_patiently()) return 0;
  ledger_.advance(step.length_bytes);
  const PrefetchLedger::Taken taken =
      ledger_.take({.offset = place, .length_bytes = step.length_bytes});
  const uint64_t skipped_bytes = ledger_.expire_skipped(kLateMax).bytes;
  const uint64_t late_bytes = ledger_.expire(kPatienceBytes, [](ByteRange) {}).bytes;
  ledger_.judge(kVerdictBytes);
  lock_.unlock();
  used_bytes_.fetch_add(taken.bytes, relaxed);
  unused_bytes_.fetch_add(taken.skipped_bytes + skipped_bytes + late_bytes, relaxed);
  return taken.bytes;
}

void FileSweeps::record_use(uint64_t predicted_bytes, uint64_t missing_bytes) {
  ahead_share_.record_use(predicted_bytes, missing_bytes);
}

// Adds what is not in the ledger, so that at most `bytes_max` are ahead of the program.
FileSweeps::Next FileSweeps::add_new(std::span<const PatternDetector::Prediction> found,
                                     uint64_t bytes_max) {
  Next next;
  uint64_t room = bytes_max - std::min(bytes_max, ledger_.bytes());
  for (const PatternDetector::Prediction& wanted : found) {
    if (room == 0 || next.count == Next::kMax) break;
    ByteRange places{.offset = wanted.place, .length_bytes = wanted.range.length_bytes};
    if (ledger_.cut(&places)) continue;
    // A range prefetched in two pieces costs each disk two seeks.
    if (places.length_bytes > room && (next.count > 0 || room < bytes_max / 2)) break;
    places.length_bytes = std::min(places.length_bytes, room);
    room -= places.length_bytes;
    if (ledger_.is_full()) unused_bytes_.fetch_add(ledger_.expire_first().bytes, relaxed);
    ledger_.add(places, /*distance_bytes=*/0);
    prefetched_bytes_.fetch_add(places.length_bytes, relaxed);
    next.ranges[next.count++] = {
        .file_id = wanted.file_id,
        .range = {.offset = wanted.range.offset + (places.offset - wanted.place),
                  .length_bytes = places.length_bytes},
        .place = places.offset};
  }
  return next;
}

FileSweeps::Next FileSweeps::passed(const Uuid& file_id, ByteRange step, uint64_t size_bytes) {
  const uint64_t enough = std::max(kAheadEnough, step.length_bytes);
  PatternDetector::Prediction found[kRangesMax];
  const uint32_t count = patterns_.predict_files({.file_id = file_id}, step, size_bytes, found);
  if (count == 0 || !lock_.lock_patiently()) return {};
  Next next;
  if (!ledger_.is_paused()) {
    next = add_new(std::span(found).first(count), std::min(ahead_share_.bytes(), enough));
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
