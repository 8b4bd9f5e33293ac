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
  return predictor_.arrive(file_id, step);
}

void FileSweeps::record_use(uint64_t predicted_bytes, uint64_t missing_bytes) {
  ahead_share_.record_use(predicted_bytes, missing_bytes);
}

FileSweeps::Next FileSweeps::passed(const Uuid& file_id, ByteRange step, uint64_t size_bytes) {
  const uint64_t enough = std::max(kAheadEnough, step.length_bytes);
  Next next;
  next.count = predictor_.predict(file_id, step, size_bytes, std::min(ahead_share_.bytes(), enough),
                                  next.ranges);
  return next;
}

}  // namespace graphlane
