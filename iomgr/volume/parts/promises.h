// The parts' promises of a file's size (open_size.h): reads and writes them in the records.
//
// D and R rise when the file is synced or closed, and fall before its parts become shorter. So a
// reader that reads sizes first and records then does not take a file that is being cut for a
// damaged one. A promise that could not be written only weakens the check.
//
// Threads: one process writes them at a time, as it changes the size (FORMAT.md, "Locks").
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>
#include <span>

#include "iomgr/volume/parts/open_size.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane {

// The open parts of one file, in the order of the devices.
struct OpenPartsOf {
  std::span<const int> parts;  // -1: missing
  std::span<const int> roots;  // of the devices; empty: skips records in a `.sum`
  Uuid volume;
  Uuid file_id;
  StripeGeometry geometry;

  PartOf of(uint32_t device_index) const {
    return {
        .root_fd = roots.empty() ? -1 : roots[device_index], .volume = volume, .file_id = file_id};
  }
};

// The present size of a file in state `open`, with `layout`. If no process has changed it in this
// boot, it ends before the first unwritten block; then OpenSize::is_cut is set. A writer must cut
// the parts there, and call promise_closed(), before it changes anything.
OpenSize look_at_open(const Layout& layout, const OpenPartsOf& parts);

// Promises that so many bytes were synced on all devices. A part without a record (volumes of
// format 1) gets one that names no stub.
void promise_synced(const OpenPartsOf& parts, uint64_t size_bytes);
// Promises that the file had so many bytes in this boot, at a close(2) or when its writer began.
void promise_closed(const OpenPartsOf& parts, uint64_t size_bytes);
// Promises all bytes of a closed file that is about to become `open`. Durable where a promise
// falls. 0 or an errno.
int promise_all_of_closed(const OpenPartsOf& parts, uint64_t size_bytes);
// Records that a program has allocated blocks, so that their zeros belong to the file. 0 or an
// errno.
int note_allocated(const OpenPartsOf& parts);
// Lowers the promises to at most so many bytes; `durably` syncs them. 0 or an errno.
int lower_promises(const OpenPartsOf& parts, uint64_t size_bytes, bool durably);

}  // namespace graphlane
