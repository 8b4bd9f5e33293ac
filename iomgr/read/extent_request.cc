#include "iomgr/read/extent_request.h"

#include <algorithm>
#include <cstring>

namespace graphlane {

bool is_aligned(const Piece& piece) {
  const uint64_t place =
      piece.range.offset | piece.range.length_bytes | reinterpret_cast<uintptr_t>(piece.buffer);
  return place % kBlockSize == 0;
}

Piece ExtentRequest::piece_of(uint64_t frame_index) const {
  const uint64_t begin = std::max(range.offset, frame_index * kExtentFrameBytes);
  const uint64_t end = std::min(range.end(), (frame_index + 1) * kExtentFrameBytes);
  return {.range = {.offset = begin, .length_bytes = end - begin},
          .buffer = buffer + (begin - range.offset)};
}

uint64_t ExtentRequest::begin_in(uint64_t frame_index) const {
  return piece_of(frame_index).range.offset - frame_index * kExtentFrameBytes;
}

// An unaligned piece needs a frame. Two reads that share a frame at their ends use it once. A
// large read leaves that frame alone, because the second reader would wait for all of the
// first one's I/O.
Admission ExtentRequest::admission(uint64_t frame_index) const {
  const Piece piece = piece_of(frame_index);
  if (!is_aligned(piece)) return Admission::kAlways;
  // The reader of the frame's first byte counts the use.
  if (is_part) {
    return piece.range.offset % kExtentFrameBytes == 0 ? Admission::kToKeep : Admission::kNone;
  }
  const bool whole =
      piece.range.length_bytes == kExtentFrameBytes || range.length_bytes < 2 * kExtentFrameBytes;
  if (whole) return Admission::kByPolicy;
  return range.length_bytes < kLargeReadMin ? Admission::kAhead : Admission::kNone;
}

// They are not for a few random bytes. Nor are they for a large read into a buffer not aligned as
// the file is, as each piece would need a frame.
bool ExtentRequest::is_extent() const {
  const bool as_in_file = (reinterpret_cast<uintptr_t>(buffer) - range.offset) % kBlockSize == 0;
  if (range.length_bytes >= kLargeReadMin) return as_in_file;
  return range.length_bytes >= kExtentReadMin || is_stream;
}

bool ExtentRequest::copy(uint64_t frame_index, std::span<const std::byte> bytes) const {
  const Piece piece = piece_of(frame_index);
  const uint64_t begin = begin_in(frame_index);
  if (begin + piece.range.length_bytes > bytes.size()) return false;
  std::memcpy(piece.buffer, bytes.data() + begin, piece.range.length_bytes);
  return true;
}

}  // namespace graphlane
