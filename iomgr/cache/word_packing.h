// Word packing: bytes that are pairs of small 32-bit words, in fewer bits.
//
//   a group of 1 KiB    u v u v u v …      128 pairs; edges of a grid's block, say: source, target
//                        │
//   two columns          u u u … | v v v …      of each the least word is the reference; the others
//                        │                      are kept as their distance from it, all in the
//   packed               ▒▒▒▒▒▒▒ | ▒▒▒▒▒        bits that the largest takes (frame of reference,
//                                               four words side by side in a vector)
//
// Exact for any bytes, and never more of them: words without anything in common keep their 32
// bits. Edges of 2^19 vertices take 38 of 64; where sources are in order, fewer still. What is
// read a hundred times faster from memory than from its device is worth the cycles: some GB a
// second, either way, with the vectors that every 64-bit processor has.
//
// No allocation, no exceptions: the preload library uses this too. Threads: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace graphlane {

inline constexpr uint64_t kPackedGroupBytes = 1024;  // before

// What unpacking needs to know of a group.
struct PackedGroup {
  uint32_t reference[2];
  uint8_t width[2];  // bits, 0 .. 32
  uint16_t begin;    // where it lies, in units of 16 bytes
};

// The most that is packed together, by `begin`.
inline constexpr uint64_t kPackedBytesMax = 1 << 20;

// Packs whole groups, at most kPackedBytesMax, into `to`, which has room for as many bytes, and may be
// where they are now. Aligned to 16 bytes both. How many bytes it has become.
uint64_t pack_words(std::span<const std::byte> bytes, std::byte* to, PackedGroup* groups);

// The same number, and packs nothing.
uint64_t packed_bytes(std::span<const std::byte> bytes);

// Whether what so many bytes become is worth the cycles: four fifths or less.
constexpr bool is_worth_packing(uint64_t packed_bytes, uint64_t bytes) {
  return packed_bytes <= bytes / 5 * 4;
}

// Where in the packed bytes these of the original lie.
struct PackedRange {
  uint64_t begin;
  uint64_t end;
};
PackedRange packed_range(const PackedGroup* groups, uint64_t begin, uint64_t length_bytes);

// The bytes of the original from `begin` on, any. (What was packed may be anything: no byte
// outside of its groups is read, or of `to` written.)
void unpack_words(const std::byte* packed, const PackedGroup* groups, uint64_t begin,
                  std::span<std::byte> to);

}  // namespace graphlane
