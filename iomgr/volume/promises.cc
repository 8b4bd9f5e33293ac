#include "iomgr/volume/promises.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>

#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

// Computed once: a process lives within one boot.
uint32_t this_boot() {
  static std::atomic<uint32_t> tag{0};
  uint32_t known = tag.load(std::memory_order_relaxed);  // orders no other memory
  if (known == 0) tag.store(known = boot_tag_now(), std::memory_order_relaxed);
  return known;
}

RecordVerdict read_promise(const OpenPartsOf& parts, uint32_t d, PartRecord* record) {
  if (parts.parts[d] < 0) return RecordVerdict::kBadField;
  return read_part_record(parts.parts[d], parts.of(d), record).value_or(RecordVerdict::kBadField);
}

template <class Change>
void change_promises(const OpenPartsOf& parts, const Change& change) {
  for (uint32_t d = 0; d < parts.parts.size(); ++d) {
    PartRecord record;
    const RecordVerdict verdict = read_promise(parts, d, &record);
    if (verdict == RecordVerdict::kNone) record = {.ordinal = d, .geometry = parts.geometry};
    else if (verdict != RecordVerdict::kRecord) continue;
    PartRecord changed = record;
    change(changed);
    if (changed != record) (void)write_part_record(parts.parts[d], parts.of(d), changed);
  }
}

}  // namespace

OpenSize look_at_open(const Layout& layout, const OpenPartsOf& parts) {
  const auto count = static_cast<uint32_t>(parts.parts.size());
  uint64_t sizes[kDeviceCountMax] = {};
  // Looks at the sizes first (promises.h).
  for (uint32_t d = 0; d < count; ++d) {
    struct stat st;
    if (parts.parts[d] >= 0 && sys::fstat(parts.parts[d], &st) == 0) sizes[d] = static_cast<uint64_t>(st.st_size);
  }
  uint64_t synced = 0, closed = 0;
  const uint32_t boot_tag = this_boot();
  for (uint32_t d = 0; d < count; ++d) {
    PartRecord record;
    if (read_promise(parts, d, &record) != RecordVerdict::kRecord) continue;
    synced = std::max(synced, record.synced_bytes);
    if (record.boot_tag == boot_tag) closed = std::max(closed, record.closed_bytes);
  }
  return size_of_open(layout, {sizes, count}, std::max(synced, closed));
}

void promise_synced(const OpenPartsOf& parts, uint64_t size_bytes) {
  change_promises(parts, [&](PartRecord& record) {
    record.synced_bytes = std::max(record.synced_bytes, size_bytes);
  });
}

void promise_closed(const OpenPartsOf& parts, uint64_t size_bytes) {
  const uint32_t boot_tag = this_boot();
  change_promises(parts, [&](PartRecord& record) {
    record.closed_bytes = size_bytes;
    record.boot_tag = boot_tag;
  });
}

int lower_promises(const OpenPartsOf& parts, uint64_t size_bytes, bool durably) {
  for (uint32_t d = 0; d < parts.parts.size(); ++d) {
    PartRecord record;
    if (read_promise(parts, d, &record) != RecordVerdict::kRecord) continue;
    if (record.synced_bytes <= size_bytes && record.closed_bytes <= size_bytes) continue;
    record.synced_bytes = std::min(record.synced_bytes, size_bytes);
    record.closed_bytes = std::min(record.closed_bytes, size_bytes);
    if (const int error = write_part_record(parts.parts[d], parts.of(d), record); error != 0) return error;
    if (const int error = durably ? sync_part_record(parts.parts[d], parts.of(d)) : 0; error != 0) return error;
  }
  return 0;
}

int promise_all_of_closed(const OpenPartsOf& parts, uint64_t size_bytes) {
  if (const int error = lower_promises(parts, size_bytes, /*durably=*/true); error != 0) return error;
  promise_synced(parts, size_bytes);
  return 0;
}

}  // namespace graphlane
