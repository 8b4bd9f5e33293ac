// Stub: the 4096-byte regular file that stands in the volume directory for a
// striped file. It is the file's inode: owner, mode, times, name and links are
// its own. What it says of the file is a Layout.
//
// FORMAT.md has the offset table. A magic stands at both ends and a CRC32C
// covers the whole, so that a stub that was cut short or flipped anywhere is
// still known as a stub, and refused, instead of passing for a plain file. All
// else is 0xff: a program that reads it as vertex IDs meets -1, not edges of
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
  kOpen = 1,    // being written: the size is what the parts say, at most the stub's
  kClosed = 2,  // the size is what the stub says
};

// The size that the stub of an open file names when there is no bound.
inline constexpr uint64_t kNoBound = INT64_MAX;

enum class Codec : uint32_t { kNone = 0 };

struct Layout {
  Uuid volume;
  Uuid file_id;
  StripeGeometry geometry;
  uint64_t logical_size = 0;  // bytes; of an open file, a bound
  FileState state = FileState::kClosed;
  Codec codec = Codec::kNone;
  // From here on of format 2 (volume/ownership.h).
  uint32_t format = kStubFormat;
  StubIdentity identity = {};  // of the stub's own inode
  uint32_t generation = 0;  // + 1 at each close
  bool is_new = false;      // no byte of it was ever synced: without its parts it is an empty file

  friend bool operator==(const Layout&, const Layout&) = default;
  StripeMap map() const { return StripeMap(geometry); }
};

enum class StubVerdict {
  kStub,         // whole and valid
  kNotAStub,     // an ordinary file
  kCutShort,     // begins as a stub, has fewer or more than 4096 bytes
  kBadChecksum,  // a byte was changed
  kBadVersion,   // written by a later Graphlane
  kBadField,     // whole, but says what cannot be (N, S, f, state)
};

// "stub cut short", "stub checksum mismatch", …
const char* describe(StubVerdict verdict);

using StubBytes = std::array<uint8_t, kStubSize>;

StubBytes encode_stub(const Layout& layout);

// `bytes` is the whole content of a file, or its first 4096 bytes and more when
// it has more. `layout` is set only for kStub.
StubVerdict decode_stub(std::span<const uint8_t> bytes, Layout* layout);

// Where a device writes less than a block at once, a power failure may leave the first sector of
// one state of the file and the rest, with the checksum, of another. What the first one says,
// whatever the checksum.
inline constexpr size_t kStubSectorSize = 512;
StubVerdict decode_fields(std::span<const uint8_t, kStubSize> bytes, Layout* layout);

// Reads the head of a file into the buffer, and decodes it. A stub is rewritten in
// place, and a read beside that may get some of the old and some of the new bytes:
// one in three, on ext4, beside a writer that never stops. So one with a bad
// checksum is read again before it is called damaged.
Result<StubVerdict> read_stub(int fd, std::span<uint8_t> buffer, Layout* layout);

// Reads a file of `file_size` bytes and decodes it. Files that cannot be stubs
// for their size cost no read. Fails with the errno of the read.
Result<StubVerdict> read_stub(int fd, uint64_t file_size, Layout* layout);

// Makes the file say `layout`, in place: one block.
Result<void> write_stub(int fd, const Layout& layout);
// Writes the stub of a file that has no name yet, and waits for the device, but not until the block is durable. If the
// name is made after that, no power failure leaves a name with a block that was never written.
Result<void> write_new_stub(int fd, const Layout& layout);

}  // namespace graphlane
