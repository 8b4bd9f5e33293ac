// The size of a file in state `open`: from the bytes that its parts hold, and those that they
// promise.
//
//   part 0   ████████████████████      N = 3: a write of five units was interrupted
//   part 1   ████████████               ends first
//   part 2   ████████████████
//   file     ═══════════════▶          the longest prefix that all parts hold; never a gap of zeros
//
//   D        was synced                must exist, whatever has happened since
//
//   R        at the last close(2)      must exist within that boot, as the page cache has survived
//
// After a power failure the file ends before the first block behind D that was allocated and never
// written (unwritten.h): its zeros are not the program's.
//
// A file shorter than its promises has lost a part, or a piece of one. It is damaged: EIO, and no
// writer and no repair changes it. `graphlane export --salvage` saves the rest.
//
// Pure: no I/O, no allocation, no exceptions. The preload library uses this too.
#pragma once

#include <cstdint>
#include <span>

#include "iomgr/volume/stub/stub.h"

namespace graphlane {

struct OpenSize {
  uint64_t bytes = 0;           // the prefix, at most the stub's bound
  uint64_t promised_bytes = 0;  // at most the stub's bound
  uint32_t short_device = 0;    // the part that ends first
  bool is_cut = false;          // a power failure left longer parts with unwritten blocks

  bool is_damaged() const { return bytes < promised_bytes; }
  friend bool operator==(const OpenSize&, const OpenSize&) = default;
};

// `part_sizes` has N elements, in the order of the devices. `promised_bytes` is the largest promise
// of a part's record.
OpenSize size_of_open(const Layout& layout, std::span<const uint64_t> part_sizes,
                      uint64_t promised_bytes);

}  // namespace graphlane
