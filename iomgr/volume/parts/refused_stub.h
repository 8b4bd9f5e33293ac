// Whether a refused stub may be emptied, which makes it a plain file.
//
// Only a stub that provably owns no parts may. Any other may be a damaged file, or one with a
// device that is away: its parts would become orphans.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <span>

#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane {

// Whether the part exists, and its record names another stub.
inline bool names_another_stub(int root_fd, const Layout& layout) {
  const Fd part = find_part(root_fd, layout.file_id);
  if (!part) return false;
  const Result<PartSeen> seen = look_at_part(part.get(), part_of(root_fd, layout));
  if (!seen || seen->verdict != RecordVerdict::kRecord) return false;
  return seen->record.stub != StubIdentity{} && seen->record.stub != layout.identity;
}

// Whether the stub lies in another inode than it records. `stub_fd` is open, or O_PATH.
inline bool is_copied_stub(int stub_fd, const Layout& layout) {
  const Result<StubSeen> seen = identify_stub(stub_fd);
  return seen && verify_stub(layout, *seen, kStubFormat) == Ownership::kCopy;
}

// Whether all parts of the stub exist and name another stub. `roots`: all devices of the stub's
// volume. False if a part cannot be examined.
inline bool all_name_another_stub(std::span<const int> roots, const Layout& layout) {
  if (layout.format == kStubFormatUnbound || roots.size() != layout.geometry.device_count) {
    return false;
  }
  for (const int root : roots) {
    if (!names_another_stub(root, layout)) return false;
  }
  return true;
}

}  // namespace graphlane
