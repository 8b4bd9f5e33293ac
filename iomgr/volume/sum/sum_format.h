// The checksums of a part: the content of `sums/xx/<file id>.sum`.
//
//   0       the part's record, on filesystems without attributes (volume/part_record_io.h)
//   4096    header, slot 0   ┐ two slots in turn: a torn write leaves the other one
//   6144    header, slot 1   ┘
//
//   8192    a byte per region: dirty or clean
//   16384   a CRC-32C per block of 4 KiB, 4 bytes each
//
// A sum is valid for a covered block (it begins below SumHeader::covered_bytes) in a clean region.
// Before the first change in a clean region its byte says dirty, durably. So a crash leaves no sum
// that contradicts good data: a changed block is dirty, or not covered.
//
// The sum of a block is the CRC-32C of its 4096 bytes, XOR that of 4096 zeros. Bytes that are not
// covered count as zeros. So a hole in the part is a hole in the `.sum`.
//
// iomgr/volume/FORMAT.md has the offset table.
//
// Pure: no I/O, no allocation, no exceptions. The preload library uses this too.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

// Parts up to this many bytes have one sum, in their record (PartRecord::sum), and no `.sum`.
inline constexpr uint64_t kSmallPartMax = 64 << 10;

inline constexpr uint64_t kSumHeaderAt = 4096;
inline constexpr uint64_t kSumHeaderStride = 2048;
inline constexpr uint64_t kSumRegionsAt = 8192;
inline constexpr uint64_t kSumRegionsMax = 8192;
inline constexpr uint64_t kSumsAt = kSumRegionsAt + kSumRegionsMax;
inline constexpr uint64_t kSumRegionMin = uint64_t{16} << 20;
inline constexpr uint64_t kSumRegionMaxLog2 = 52;

// The states of a region. Any other value is damage, and counts as clean: no single bit error turns
// one state into another.
inline constexpr uint8_t kRegionClean = 0;
inline constexpr uint8_t kRegionDirty = 0xd2;
inline constexpr uint8_t kRegionMarking = 0x2d;  // dirty, but perhaps not durably yet
constexpr bool is_region_dirty(uint8_t value) {
  return value == kRegionDirty || value == kRegionMarking;
}

constexpr uint64_t sum_at(uint64_t block) { return kSumsAt + block * sizeof(uint32_t); }
constexpr uint64_t sum_block_count(uint64_t part_bytes) {
  return (part_bytes + kBlockSize - 1) / kBlockSize;
}

// The region size for a part: 16 MiB, or the power of two with which 8192 regions cover the part.
constexpr uint64_t sum_region_bytes(uint64_t part_bytes) {
  const uint64_t least = (part_bytes + kSumRegionsMax - 1) / kSumRegionsMax;
  return least <= kSumRegionMin ? kSumRegionMin : std::bit_ceil(least);
}

struct SumHeader {
  // The device of the part.
  uint32_t ordinal = 0;
  // The part record's generation when the sums were made, see FORMAT.md.
  uint32_t generation = 0;
  // Incremented at each write of a header; its lowest bit is the slot.
  uint64_t sequence = 0;
  // A power of two.
  uint64_t region_bytes = kSumRegionMin;
  // Bytes from the beginning of the part.
  uint64_t covered_bytes = 0;
  // The sums of an old part in the making: what is not covered waits for `check --checksum`.
  bool is_partial = false;

  uint64_t region_of(uint64_t part_offset) const { return part_offset / region_bytes; }
  friend bool operator==(const SumHeader&, const SumHeader&) = default;
};

enum class SumVerdict : uint8_t {
  kGood,
  kMissing,    // there is no such file
  kOtherFile,  // not a regular file, or of another owner
  kDamaged,    // neither header is valid

  kForeign,  // the sums of another part
  kStale,    // older than the part's last close: from an older copy
};
// "are missing", …: the problem with a part's checksums.
const char* describe(SumVerdict verdict);

inline constexpr size_t kSumHeaderSize = 88;
using SumHeaderBytes = std::array<uint8_t, kSumHeaderSize>;

SumHeaderBytes encode_sum_header(const SumHeader& header, const Uuid& volume, const Uuid& file_id);
// kGood, kDamaged, or kForeign; `header` is set for kGood.
SumVerdict decode_sum_header(std::span<const uint8_t> bytes, const Uuid& volume,
                             const Uuid& file_id, uint32_t ordinal, SumHeader* header);

// The sums of `blocks` adjacent blocks.
void sum_blocks(const void* data, uint32_t blocks, uint32_t* sums);
// The sum of a block with only so many valid bytes.
uint32_t sum_partial_block(const void* data, uint64_t length_bytes);

}  // namespace graphlane
