// PartRecord: a part's own description, 60 bytes beside its data.
//
//   stub  ── names its own inode ──►  { inode, birth time }  ◄── names the same ──  part, part, part
//
// A stub is 4096 bytes that anyone can copy. So a stub names its own inode, and each part names that
// inode too (ownership.h has the rule). The record also says which part of which file this is, so that
// a swapped, stale or foreign part is found at open, without reading data.
//
// It lies in the attribute `user.graphlane` of the part. A filesystem without such attributes keeps it
// in the first 4096 bytes of `parts/xx/<file id>.sum` (part_record_io.h). FORMAT.md has the offset table.
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

// One inode of a filesystem, as long as it exists. An inode that is used again has another birth time.
struct StubIdentity {
  uint64_t inode = 0;  // 0: no inode
  // Birth time in ns since 1970. Where the filesystem has none: the inode's generation number
  // (FS_IOC_GETVERSION), else 0.
  int64_t born = 0;

  friend bool operator==(const StubIdentity&, const StubIdentity&) = default;
};

// 60 bytes still fit into ext4's inode; 64 take a block of their own.
inline constexpr size_t kPartRecordSize = 60;

struct PartRecord {
  // `flags`. An update keeps bits that are not named here, and every reader accepts them.
  static constexpr uint8_t kMaking = 1;   // is being filled: an import, a re-striping or a creation is under way
  static constexpr uint8_t kNew = 2;      // bound to a stub whose bytes were never synced
  static constexpr uint8_t kRemoved = 4;  // the stub's last name has gone, in the boot of `boot_tag`
  static constexpr uint8_t kSummed = 8;   // `sum` holds
  static constexpr uint8_t kBlockSums = 16;  // there is a `.sum` with a checksum of each block (sum/sum_format.h)
  static constexpr uint8_t kAllocated = 32;  // a program has allocated blocks of the file by fallocate(2)

  uint8_t flags = 0;
  uint32_t ordinal = 0;      // the device that the part belongs on
  StripeGeometry geometry = {};  // N, f and S of the file
  uint32_t generation = 0;   // + 1 at each close of the file; see ownership.h
  StubIdentity stub = {};    // the stub that owns the part; all zeros: not bound yet
  uint64_t synced_bytes = 0;  // D: the file's logical size when it was last synced
  uint64_t closed_bytes = 0;  // R: the file's logical size at the last close(2), within the boot of `boot_tag`
  uint32_t boot_tag = 0;     // boot_tag_now() at that time; 0: R is not set
  uint32_t sum = 0;          // CRC-32C of a part of at most 64 KiB, if kSummed

  friend bool operator==(const PartRecord&, const PartRecord&) = default;
};

enum class RecordVerdict : uint8_t {
  kRecord,      // whole, and of this file
  kNone,        // the part has no record
  kBadLength,   // not 60 bytes
  kBadVersion,  // written by a later Graphlane
  kBadChecksum,  // damaged, or the record of a part of another file or volume
  kBadField,    // whole, but says what cannot be
};

// "has no record", …
const char* describe(RecordVerdict verdict);

using PartRecordBytes = std::array<uint8_t, kPartRecordSize>;

// The checksum covers the volume's uuid and the file id, which are not in the record.
PartRecordBytes encode_part_record(const PartRecord& record, const Uuid& volume, const Uuid& file_id);

// `record` is set only for kRecord. No bytes: kNone.
RecordVerdict decode_part_record(std::span<const uint8_t> bytes, const Uuid& volume,
                                 const Uuid& file_id, PartRecord* record);

}  // namespace graphlane
