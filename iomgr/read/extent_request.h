// ExtentRequest: one read by way of frames: which frames it wants, and which part of each.
//
//   range        |  ..====|========|===.... |      = wanted bytes
//   frames       |   0    |   1    |   2    |
//   pieces           ====  ========  ===           each into its place of the caller's buffer
#pragma once

#include <cstdint>
#include <span>

#include "iomgr/cache/mapped_cache.h"
#include "iomgr/io/engine.h"
#include "iomgr/read/extent_file.h"

namespace graphlane {

// Reads of this size keep the devices busy by themselves.
inline constexpr uint64_t kLargeReadMin = 8 << 20;
// Smaller reads use frames only within a stream.
inline constexpr uint64_t kExtentReadMin = kExtentFrameBytes / 2;

// Whether the piece fits direct I/O.
bool is_aligned(const Piece& piece);

struct ExtentRequest {
  MappedCache& cache;
  const ExtentFile& file;
  const ByteRange range;  // within the file
  char* const buffer;
  IoEngine& engine;
  bool is_stream = false;
  uint64_t fetch_end = 0;  // how far it may read on
  bool is_part = false;    // one of several that are requested at the same time

  uint64_t first_frame() const { return range.offset / kExtentFrameBytes; }
  bool wants(uint64_t frame_index) const { return frame_index * kExtentFrameBytes < range.end(); }
  // The part of the range in the frame, and its place in the caller's buffer.
  Piece piece_of(uint64_t frame_index) const;
  // The offset of that part within the frame.
  uint64_t begin_in(uint64_t frame_index) const;
  Admission admission(uint64_t frame_index) const;
  // Whether frames are worth their cost.
  bool is_extent() const;
  // Copies the piece from an unpacked frame. False: the frame ends before the piece does.
  bool copy(uint64_t frame_index, std::span<const std::byte> bytes) const;
};

}  // namespace graphlane
