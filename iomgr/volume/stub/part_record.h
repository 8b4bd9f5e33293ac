// PartRecord: a part's own description, 60 bytes beside its data.
//
//   stub  ── names its own inode ──►  { inode, birth time }  ◄── names the same ──  part, part, part
//
// A stub is 4096 bytes that any user can copy. So a stub names its own inode, and each part names
// that inode too (ownership.h has the rule). The record also says which part of which file this is.
// So open() finds a swapped, stale or foreign part without reading data.
//
// It lies in the part's attribute `user.graphlane`. On a filesystem without such attributes it is
// in the first 4096 bytes of the part's `.sum` (part_record_io.h). FORMAT.md has the offset table.
//
// Pure: no I/O, no allocation, no exceptions. The preload library uses this too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

// One inode of a filesystem, during its existence. A reused inode has another birth time.
struct StubIdentity {
  uint64_t inode = 0;  // 0: no inode
  // Birth time in ns since 1970. On a filesystem without one: the inode's generation number
  // (FS_IOC_GETVERSION), or 0.
  int64_t born = 0;

  friend bool operator==(const StubIdentity&, const StubIdentity&) = default;
};

// 60 bytes fit into ext4's inode; 64 would take a block.
inline constexpr size_t kPartRecordSize = 60;

struct PartRecord {
  // `flags`. An update keeps the bits that are not named here, and every reader accepts them.
  //
  // Is being filled by an import, a restripe or a creation.
  static constexpr uint8_t kMaking = 1;
  // Bound to a stub without synced bytes.
  static constexpr uint8_t kNew = 2;
  // The stub lost its last name, in the boot of `boot_tag`.
  static constexpr uint8_t kRemoved = 4;
  // `sum` is valid.
  static constexpr uint8_t kSummed = 8;
  // A `.sum` has a checksum of each block (sum/sum_format.h).
  static constexpr uint8_t kBlockSums = 16;
  // A program has allocated blocks of the file by fallocate(2).
  static constexpr uint8_t kAllocated = 32;

  uint8_t flags = 0;
  // The device that the part belongs on.
  uint32_t ordinal = 0;
  // N, f and S of the file.
  StripeGeometry geometry = {};
  // Incremented at each close of the file; see ownership.h.
  uint32_t generation = 0;
  // The stub that owns the part; all zeros: not bound yet.
  StubIdentity stub = {};
  // D: the file's logical size at its last sync.
  uint64_t synced_bytes = 0;
  // R: the file's logical size at its last close(2), within the boot of `boot_tag`.
  uint64_t closed_bytes = 0;
  // boot_tag_now() at that time; 0: R is not set.
  uint32_t boot_tag = 0;
  // CRC-32C of a part of at most 64 KiB, if kSummed.
  uint32_t sum = 0;

  friend bool operator==(const PartRecord&, const PartRecord&) = default;
};

enum class RecordVerdict : uint8_t {
  // Valid, and of this file.
  kRecord,
  // The part has no record.
  kNone,
  // Not 60 bytes.
  kBadLength,
  // Written by a later Graphlane.
  kBadVersion,
  // Damaged, or the record of a part of another file or volume.
  kBadChecksum,
  // Intact, but with an impossible value.
  kBadField,
};

// "has no record", …
const char* describe(RecordVerdict verdict);

using PartRecordBytes = std::array<uint8_t, kPartRecordSize>;

// The checksum covers the volume's uuid and the file id, which are not in the record.
PartRecordBytes encode_part_record(const PartRecord& record, const Uuid& volume,
                                   const Uuid& file_id);

// `record` is set only for kRecord. No bytes: kNone.
RecordVerdict decode_part_record(std::span<const uint8_t> bytes, const Uuid& volume,
                                 const Uuid& file_id, PartRecord* record);

}  // namespace graphlane
