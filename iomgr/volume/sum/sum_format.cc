#include "iomgr/volume/sum/sum_format.h"

#include <algorithm>
#include <cstring>

#include "iomgr/base/crc32c.h"
#include "iomgr/base/crc32c_long.h"

namespace graphlane {
namespace {

// The header is copied as it lies in memory (FORMAT.md: little-endian).
static_assert(std::endian::native == std::endian::little);

constexpr uint8_t kMagic[8] = {0x89, 'G', 'L', 'S', 'U', 'M', 'S', '\n'};
constexpr uint32_t kSumVersion = 1;

struct PackedSumHeader {
  uint8_t magic[8];
  uint32_t version;
  uint32_t ordinal;
  Uuid volume;
  Uuid file_id;
  uint32_t generation;
  uint32_t region_log2;
  uint64_t sequence;
  uint64_t covered_bytes;
  uint32_t flags;
  uint8_t reserved[8];
  uint32_t checksum;
};
static_assert(sizeof(PackedSumHeader) == kSumHeaderSize);

constexpr uint32_t kPartialFlag = 1;

constexpr uint32_t kCrcOfZeros = 0x98f94189;  // of 4096; checked by SumFormatTest

constexpr uint8_t kZeros[256] = {};

}  // namespace

const char* describe(SumVerdict verdict) {
  switch (verdict) {
    case SumVerdict::kGood: return "are good";
    case SumVerdict::kMissing: return "are missing";
    case SumVerdict::kOtherFile: return "are not a regular file of the part's owner";
    case SumVerdict::kDamaged: return "are damaged";
    case SumVerdict::kForeign: return "are another part's";
    case SumVerdict::kStale: return "are of an older state of the part";
  }
  return "are unknown";
}

SumHeaderBytes encode_sum_header(const SumHeader& header, const Uuid& volume, const Uuid& file_id) {
  PackedSumHeader packed{
      .magic = {},
      .version = kSumVersion,
      .ordinal = header.ordinal,
      .volume = volume,
      .file_id = file_id,
      .generation = header.generation,
      .region_log2 = static_cast<uint32_t>(std::countr_zero(header.region_bytes)),
      .sequence = header.sequence,
      .covered_bytes = header.covered_bytes,
      .flags = header.is_partial ? kPartialFlag : 0,
      .reserved = {},
      .checksum = 0};
  std::memcpy(packed.magic, kMagic, sizeof kMagic);
  SumHeaderBytes bytes;
  std::memcpy(bytes.data(), &packed, sizeof packed);
  packed.checksum = crc32c(bytes.data(), offsetof(PackedSumHeader, checksum));
  std::memcpy(bytes.data(), &packed, sizeof packed);
  return bytes;
}

SumVerdict decode_sum_header(std::span<const uint8_t> bytes, const Uuid& volume,
                             const Uuid& file_id, uint32_t ordinal, SumHeader* header) {
  PackedSumHeader packed;
  if (bytes.size() < sizeof packed) return SumVerdict::kDamaged;
  std::memcpy(&packed, bytes.data(), sizeof packed);
  const bool whole = std::memcmp(packed.magic, kMagic, sizeof kMagic) == 0 &&
                     packed.version == kSumVersion &&
                     packed.checksum == crc32c(bytes.data(), offsetof(PackedSumHeader, checksum));
  if (!whole || packed.region_log2 > kSumRegionMaxLog2 || packed.covered_bytes > INT64_MAX ||
      (uint64_t{1} << packed.region_log2) < kSumRegionMin ||
      packed.covered_bytes >> packed.region_log2 > kSumRegionsMax) {
    return SumVerdict::kDamaged;
  }
  if (packed.volume != volume || packed.file_id != file_id || packed.ordinal != ordinal) {
    return SumVerdict::kForeign;
  }
  *header = {.ordinal = packed.ordinal,
             .generation = packed.generation,
             .sequence = packed.sequence,
             .region_bytes = uint64_t{1} << packed.region_log2,
             .covered_bytes = packed.covered_bytes,
             .is_partial = (packed.flags & kPartialFlag) != 0};
  return SumVerdict::kGood;
}

void sum_blocks(const void* data, uint32_t blocks, uint32_t* sums) {
  crc32c_blocks(data, kBlockSize, blocks, sums);
  for (uint32_t i = 0; i < blocks; ++i) sums[i] ^= kCrcOfZeros;
}

uint32_t sum_partial_block(const void* data, uint64_t length_bytes) {
  uint32_t crc = crc32c_extend(0, data, length_bytes);
  for (uint64_t left = kBlockSize - length_bytes; left > 0;) {
    const uint64_t piece = std::min<uint64_t>(left, sizeof kZeros);
    crc = crc32c_extend(crc, kZeros, piece);
    left -= piece;
  }
  return crc ^ kCrcOfZeros;
}

}  // namespace graphlane
