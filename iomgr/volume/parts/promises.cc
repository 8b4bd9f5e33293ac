#include "iomgr/volume/parts/promises.h"

#include <sys/stat.h>

#include <algorithm>

#include "iomgr/base/sys.h"
#include "iomgr/volume/parts/unwritten.h"

namespace graphlane {
namespace {

RecordVerdict read_promise(const OpenPartsOf& parts, uint32_t d, PartRecord* record) {
  if (parts.parts[d] < 0) return RecordVerdict::kBadField;
  return read_part_record(parts.parts[d], parts.of(d), record).value_or(RecordVerdict::kBadField);
}

template <class Change>
void change_promises(const OpenPartsOf& parts, const Change& change) {
  for (uint32_t d = 0; d < parts.parts.size(); ++d) {
    PartRecord record;
    const RecordVerdict verdict = read_promise(parts, d, &record);
    if (verdict == RecordVerdict::kNone) {
      record = {.ordinal = d, .geometry = parts.geometry};
    } else if (verdict != RecordVerdict::kRecord) {
      continue;
    }
    PartRecord changed = record;
    change(changed);
    if (changed != record) (void)write_part_record(parts.parts[d], parts.of(d), changed);
  }
}

OpenSize look_once(const Layout& layout, const OpenPartsOf& parts) {
  const auto count = static_cast<uint32_t>(parts.parts.size());
  uint64_t sizes[kDeviceCountMax] = {};
  // Looks at the sizes first (promises.h).
  for (uint32_t d = 0; d < count; ++d) {
    struct stat st;
    if (parts.parts[d] >= 0 && sys::fstat(parts.parts[d], &st) == 0) {
      sizes[d] = static_cast<uint64_t>(st.st_size);
    }
  }
  uint64_t synced = 0, closed = 0;
  const uint32_t boot_tag = boot_tag_now();
  // Without a record, or with blocks allocated by the program, unwritten blocks prove nothing.
  bool can_tell = true;
  for (uint32_t d = 0; d < count; ++d) {
    PartRecord record;
    if (read_promise(parts, d, &record) != RecordVerdict::kRecord) {
      can_tell = false;
      continue;
    }
    synced = std::max(synced, record.synced_bytes);
    const bool is_of_this_boot = boot_tag != 0 && record.boot_tag == boot_tag;
    if (is_of_this_boot) closed = std::max(closed, record.closed_bytes);
    if (is_of_this_boot || (record.flags & PartRecord::kAllocated) != 0) can_tell = false;
  }
  const uint64_t promised = std::max(synced, closed);
  OpenSize open = size_of_open(layout, {sizes, count}, promised);
  if (!can_tell || open.bytes <= promised) return open;
  const StripeMap map = layout.map();
  for (uint32_t d = 0; d < count; ++d) {
    sizes[d] = first_unwritten(parts.parts[d], map.part_size(d, promised), sizes[d]);
  }
  const uint64_t with_zeros = open.bytes;
  open = size_of_open(layout, {sizes, count}, promised);
  open.is_cut = open.bytes < with_zeros;
  return open;
}

}  // namespace

OpenSize look_at_open(const Layout& layout, const OpenPartsOf& parts) {
  OpenSize open = look_once(layout, parts);
  // Another process may have written and synced between the two steps of a look: the size is then an
  // old one, and the promise a new one. So a file is damaged only if two looks agree.
  for (OpenSize before; open.is_damaged() && open != before;) {
    before = open;
    open = look_once(layout, parts);
  }
  return open;
}

void promise_synced(const OpenPartsOf& parts, uint64_t size_bytes) {
  change_promises(parts, [&](PartRecord& record) {
    record.synced_bytes = std::max(record.synced_bytes, size_bytes);
  });
}

void promise_closed(const OpenPartsOf& parts, uint64_t size_bytes) {
  const uint32_t boot_tag = boot_tag_now();
  change_promises(parts, [&](PartRecord& record) {
    record.closed_bytes = boot_tag != 0 ? size_bytes : 0;
    record.boot_tag = boot_tag;
  });
}

int note_allocated(const OpenPartsOf& parts) {
  int error = 0;
  for (uint32_t d = 0; d < parts.parts.size() && error == 0; ++d) {
    PartRecord record;
    if (read_promise(parts, d, &record) != RecordVerdict::kRecord) continue;
    if ((record.flags & PartRecord::kAllocated) != 0) continue;
    record.flags |= PartRecord::kAllocated;
    error = write_part_record(parts.parts[d], parts.of(d), record);
  }
  return error;
}

int lower_promises(const OpenPartsOf& parts, uint64_t size_bytes, bool durably) {
  for (uint32_t d = 0; d < parts.parts.size(); ++d) {
    PartRecord record;
    if (read_promise(parts, d, &record) != RecordVerdict::kRecord) continue;
    if (record.synced_bytes <= size_bytes && record.closed_bytes <= size_bytes) continue;
    record.synced_bytes = std::min(record.synced_bytes, size_bytes);
    record.closed_bytes = std::min(record.closed_bytes, size_bytes);
    if (const int error = write_part_record(parts.parts[d], parts.of(d), record); error != 0) {
      return error;
    }
    if (const int error = durably ? sync_part_record(parts.parts[d], parts.of(d)) : 0; error != 0) {
      return error;
    }
  }
  return 0;
}

int promise_all_of_closed(const OpenPartsOf& parts, uint64_t size_bytes) {
  if (const int error = lower_promises(parts, size_bytes, /*durably=*/true); error != 0) {
    return error;
  }
  promise_synced(parts, size_bytes);
  promise_closed(parts, size_bytes);
  return 0;
}

}  // namespace graphlane
