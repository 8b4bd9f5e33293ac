// The parts' promises of a file's size (open_size.h), read from their records and written there.
//
// D and R rise when the file is synced or closed, and fall before its parts become shorter. So a
// reader that looks at sizes first and at records then never takes a file for damaged that was cut
// meanwhile. A promise that could not be written is only one less to keep.
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
  std::span<const int> parts;  // -1: not there
  std::span<const int> roots;  // of the devices; empty: records beside the parts (`.sum`) are left out
  Uuid volume;
  Uuid file_id;
  StripeGeometry geometry;

  PartOf of(uint32_t device_index) const {
    return {.root_fd = roots.empty() ? -1 : roots[device_index], .volume = volume, .file_id = file_id};
  }
};

// The size that the file has now, if its stub says `open` and `layout`. If no process has changed it in this boot, it
// ends before the first block that was never written; OpenSize::is_cut then. A writer cuts the parts there, and calls
// promise_closed(), before it changes anything.
OpenSize look_at_open(const Layout& layout, const OpenPartsOf& parts);

// Promises that so many bytes were synced on all devices. A part without a record (volumes of
// format 1) gets one that names no stub.
void promise_synced(const OpenPartsOf& parts, uint64_t size_bytes);
// Promises that the file had so many bytes at a close(2), or when its writer began, in this boot.
void promise_closed(const OpenPartsOf& parts, uint64_t size_bytes);
// Promises all bytes of a closed file, whose stub is about to say `open`. Durable where a promise
// falls. 0 or an errno.
int promise_all_of_closed(const OpenPartsOf& parts, uint64_t size_bytes);
// Says that a program has allocated blocks. Their zeros are the file's from now on. 0 or an errno.
int note_allocated(const OpenPartsOf& parts);
// Lowers the promises to at most so many bytes; durably, if asked to. 0 or an errno.
int lower_promises(const OpenPartsOf& parts, uint64_t size_bytes, bool durably);

}  // namespace graphlane
