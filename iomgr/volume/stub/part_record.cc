#include "iomgr/volume/stub/part_record.h"

#include <bit>
#include <cstring>

#include "iomgr/base/crc32c.h"

namespace graphlane {
namespace {

// The record is copied as it lies in memory (FORMAT.md: little-endian).
static_assert(std::endian::native == std::endian::little);

constexpr uint8_t kPartRecordVersion = 1;

// Little-endian, no padding. Packed, because 60 is no multiple of 8.
struct [[gnu::packed]] PackedPartRecord {
  uint8_t version;
  uint8_t flags;
  uint8_t ordinal;
  uint8_t device_count;
  uint8_t first_device;
  uint8_t reserved[3];  // 0
  uint32_t stripe_depth_blocks;
  uint32_t generation;
  uint64_t inode;
  int64_t born;
  uint64_t synced_bytes;
  uint64_t closed_bytes;
  uint32_t boot_tag;
  uint32_t sum;
  uint32_t checksum;
};
static_assert(sizeof(PackedPartRecord) == kPartRecordSize);
static_assert(kDeviceCountMax <= UINT8_MAX && kStripeDepthMax / kBlockSize <= UINT32_MAX);

constexpr size_t kRecordChecksumAt = kPartRecordSize - sizeof(uint32_t);

uint32_t record_checksum(const uint8_t* record, const Uuid& volume, const Uuid& file_id) {
  uint8_t covered[kRecordChecksumAt + 2 * sizeof(Uuid)];
  std::memcpy(covered, record, kRecordChecksumAt);
  std::memcpy(covered + kRecordChecksumAt, volume.bytes.data(), sizeof(Uuid));
  std::memcpy(covered + kRecordChecksumAt + sizeof(Uuid), file_id.bytes.data(), sizeof(Uuid));
  return crc32c(covered, sizeof covered);
}

}  // namespace

const char* describe(RecordVerdict verdict) {
  switch (verdict) {
    case RecordVerdict::kRecord: return "has a valid record";
    case RecordVerdict::kNone: return "has no record of whose part it is";
    case RecordVerdict::kBadLength: return "has a record of another length";
    case RecordVerdict::kBadVersion: return "has a record of an unknown version";
    case RecordVerdict::kBadChecksum: return "has a record that is damaged or another file's";
    case RecordVerdict::kBadField: return "has an impossible record";
  }
  return "has an unknown record";
}

PartRecordBytes encode_part_record(const PartRecord& record, const Uuid& volume,
                                   const Uuid& file_id) {
  PackedPartRecord packed{
      .version = kPartRecordVersion,
      .flags = record.flags,
      .ordinal = static_cast<uint8_t>(record.ordinal),
      .device_count = static_cast<uint8_t>(record.geometry.device_count),
      .first_device = static_cast<uint8_t>(record.geometry.first_device),
      .reserved = {},
      .stripe_depth_blocks = static_cast<uint32_t>(record.geometry.stripe_depth_bytes / kBlockSize),
      .generation = record.generation,
      .inode = record.stub.inode,
      .born = record.stub.born,
      .synced_bytes = record.synced_bytes,
      .closed_bytes = record.closed_bytes,
      .boot_tag = record.boot_tag,
      .sum = record.sum,
      .checksum = 0};
  PartRecordBytes bytes;
  std::memcpy(bytes.data(), &packed, sizeof packed);
  packed.checksum = record_checksum(bytes.data(), volume, file_id);
  std::memcpy(bytes.data(), &packed, sizeof packed);
  return bytes;
}

RecordVerdict decode_part_record(std::span<const uint8_t> bytes, const Uuid& volume,
                                 const Uuid& file_id, PartRecord* record) {
  if (bytes.empty()) return RecordVerdict::kNone;
  // Checks the version before the length: a later version may have another length.
  if (bytes[0] != kPartRecordVersion) return RecordVerdict::kBadVersion;
  if (bytes.size() != kPartRecordSize) return RecordVerdict::kBadLength;
  PackedPartRecord packed;
  std::memcpy(&packed, bytes.data(), sizeof packed);
  if (packed.checksum != record_checksum(bytes.data(), volume, file_id)) {
    return RecordVerdict::kBadChecksum;
  }
  const PartRecord decoded{
      .flags = packed.flags,
      .ordinal = packed.ordinal,
      .geometry = {.stripe_depth_bytes = uint64_t{packed.stripe_depth_blocks} * kBlockSize,
                   .device_count = packed.device_count,
                   .first_device = packed.first_device},
      .generation = packed.generation,
      .stub = {.inode = packed.inode, .born = packed.born},
      .synced_bytes = packed.synced_bytes,
      .closed_bytes = packed.closed_bytes,
      .boot_tag = packed.boot_tag,
      .sum = packed.sum};
  const bool sizes_possible =
      decoded.synced_bytes <= INT64_MAX && decoded.closed_bytes <= INT64_MAX;
  if (!decoded.geometry.valid() || decoded.ordinal >= decoded.geometry.device_count ||
      !sizes_possible) {
    return RecordVerdict::kBadField;
  }
  *record = decoded;
  return RecordVerdict::kRecord;
}

}  // namespace graphlane
