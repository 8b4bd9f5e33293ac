// Stub: the 4096-byte regular file in the volume directory that stands for a striped file. It is
// the file's inode: owner, mode, times, name and links are its own. Its content is a Layout.
//
// FORMAT.md has the offset table. A magic stands at both ends, and a CRC32C covers the whole. So a
// stub that was cut short or damaged anywhere is recognized and refused, and not taken for a plain
// file. All other bytes are 0xff: a program that reads it as vertex IDs meets -1, not edges of
// vertex 0.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "iomgr/base/result.h"
#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/part_record.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

inline constexpr size_t kStubSize = 4096;

// The values of `Layout::format`.
inline constexpr uint32_t kStubFormatUnbound = 1;  // names no inode
inline constexpr uint32_t kStubFormat = 2;         // names the inode that it lies in

enum class FileState : uint32_t {
  kOpen = 1,    // being written: the parts tell the size, at most the stub's
  kClosed = 2,  // the stub tells the size
};

// The size in the stub of an open file without a bound.
inline constexpr uint64_t kNoBound = INT64_MAX;

enum class Codec : uint32_t { kNone = 0 };

struct Layout {
  Uuid volume;
  Uuid file_id;
  StripeGeometry geometry;
  uint64_t logical_size = 0;  // bytes; for an open file, a bound
  FileState state = FileState::kClosed;
  Codec codec = Codec::kNone;
  // The members below exist in format 2 only (volume/ownership.h).
  uint32_t format = kStubFormat;
  StubIdentity identity = {};  // of the stub's own inode
  uint32_t generation = 0;     // + 1 at each close
  bool is_new = false;         // no byte was ever synced: without its parts it is an empty file

  friend bool operator==(const Layout&, const Layout&) = default;
  StripeMap map() const { return StripeMap(geometry); }
};

enum class StubVerdict {
  kStub,      // valid
  kNotAStub,  // an ordinary file
  kCutShort,  // begins as a stub, but is not 4096 bytes long

  kBadChecksum,  // a byte was changed
  kBadVersion,   // written by a later Graphlane
  kBadField,     // intact, but with an impossible N, S, f or state
};

// "stub cut short", "stub checksum mismatch", …
const char* describe(StubVerdict verdict);

using StubBytes = std::array<uint8_t, kStubSize>;

StubBytes encode_stub(const Layout& layout);

// `bytes` is a file's whole content, or at least its first 4096 bytes and one more if it is longer.
// `layout` is set only for kStub.
StubVerdict decode_stub(std::span<const uint8_t> bytes, Layout* layout);

// Decodes the fields whatever the checksum. A power failure may leave the first sector of one state
// of the file, and the rest with the checksum of another, on devices that write less than a block
// at once.
inline constexpr size_t kStubSectorSize = 512;
StubVerdict decode_fields(std::span<const uint8_t, kStubSize> bytes, Layout* layout);

// Reads the head of a file into the buffer, and decodes it. A stub is rewritten in place, so a
// concurrent read may get old and new bytes: on ext4 one read in three beside a busy writer. So a
// stub with a bad checksum is read again before it counts as damaged.
Result<StubVerdict> read_stub(int fd, std::span<uint8_t> buffer, Layout* layout);

// Decodes a file of `file_size` bytes. Of one that has not a stub's size, the first 8 bytes are read: kCutShort if they
// are a stub's. Fails with the errno of the read.
Result<StubVerdict> read_stub(int fd, uint64_t file_size, Layout* layout);
// Whether such a file is a stub, intact or damaged. One that cannot be read is none.
bool claims_to_be_stub(int fd, uint64_t file_size);

// Reads the stub again. True: it says something else of the same file now, which is in `layout`. So a
// part that did not fit is no damage: another process has begun to change the file.
bool has_changed(int fd, Layout* layout);

// Writes `layout` to the file in place: one block.
Result<void> write_stub(int fd, const Layout& layout);
// As write_stub(), for a change that is not one of the file's content: the mtime stays, as far as this
// user may set it. (A power failure between the two steps may keep the time of the write.)
Result<void> rewrite_stub(int fd, const Layout& layout);
// Writes the stub of a file without a name, and waits for the device, but does not make the block
// durable. If the name is made after that, no power failure leaves a name with an unwritten block.
Result<void> write_new_stub(int fd, const Layout& layout);

}  // namespace graphlane
