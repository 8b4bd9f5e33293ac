// Word packing: stores pairs of small 32-bit words in fewer bits.
//
//   a group of 1 KiB    u v u v u v …      128 pairs, e.g. source and target of an edge
//
//                        │
//   two columns          u u u … | v v v …
//                        │
//   packed               ▒▒▒▒▒▒▒ | ▒▒▒▒▒
//
// Frame of reference: each column keeps its least word as the reference. Every word is stored as
// the distance from it, in the bits that the largest distance takes, four words to a vector.
//
// Exact for any bytes, and never larger than they are: words with nothing in common keep their
// 32 bits. Edges of 2^19 vertices take 38 of 64 bits; with sorted sources fewer. Packing and
// unpacking run at GB/s, so they pay wherever memory is much faster than the device.
//
// No allocation, no exceptions: the preload library uses this too. Threads: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace graphlane {

inline constexpr uint64_t kPackedGroupBytes = 1024;  // unpacked

// A group's header.
struct PackedGroup {
  uint32_t reference[2];
  uint8_t width[2];  // bits, 0 .. 32
  uint16_t begin;    // where it lies, in units of 16 bytes
};

// The most bytes that are packed together: the range of `begin`.
inline constexpr uint64_t kPackedBytesMax = 1 << 20;

// Packs whole groups, at most kPackedBytesMax bytes, into `to`. Returns the packed size. `to` has
// room for the unpacked size and may be the source itself. Both are aligned to 16 bytes.
uint64_t pack_words(std::span<const std::byte> bytes, std::byte* to, PackedGroup* groups);

// The size that pack_words() would return; packs nothing.
uint64_t packed_bytes(std::span<const std::byte> bytes);

// Whether packing is worth its cycles: the packed size is four fifths or less.
constexpr bool is_worth_packing(uint64_t packed_bytes, uint64_t bytes) {
  return packed_bytes <= bytes / 5 * 4;
}

// Where these bytes of the original lie in the packed bytes.
struct PackedRange {
  uint64_t begin;
  uint64_t end;
};
PackedRange packed_range(const PackedGroup* groups, uint64_t begin, uint64_t length_bytes);

// Copies bytes of the original from any `begin` on. Safe on corrupt packed bytes: it reads only
// their groups and writes only `to`.
void unpack_words(const std::byte* packed, const PackedGroup* groups, uint64_t begin,
                  std::span<std::byte> to);

}  // namespace graphlane
