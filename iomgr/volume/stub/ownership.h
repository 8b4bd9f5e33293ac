// verify_ownership(): whether the parts that a stub names are its own. A mount, the preload
// library, the servers and the tools all accept a stub by this one rule.
//
//   the stub's content       names an inode         must be the inode that it lies in
//
//   each part's record       names an inode         must be the same one
//                            names its place        device, N, f, S as the stub and the volume say
//                            has a generation       the stub's, or one more
//
//   each part                has an owner           the stub's owner, also for root's stubs
//
// Every reader can check this without a privilege or a secret. A copy of a stub lies in another
// inode, and no part names a forged one. A stub that fails is refused (EIO), and never taken for a
// plain file. Its name can be removed, replaced or emptied; that takes no parts along.
//
// Generations. A close of the file gives each part the next generation, syncs the parts, and then
// writes it to the stub. So parts have the stub's generation or the next one, whatever was
// interrupted. A part that is behind comes from an older copy of its device.
//
// A stub of format 1 names no inode. In a volume of format 1 it is accepted if the owners are
// equal, and is read only. In a volume of format 2 it is refused (`graphlane check --upgrade` binds
// it).
//
// Pure: no I/O, no allocation, no exceptions.
#pragma once

#include <cstdint>
#include <span>

#include "iomgr/volume/stub/part_record.h"
#include "iomgr/volume/stub/stub.h"

namespace graphlane {

// The stub's inode, from the descriptor by which its content was read.
struct StubSeen {
  StubIdentity identity;
  uint32_t uid = 0;
};

// One part, from the descriptor by which it was opened.
struct PartSeen {
  bool is_there = false;
  uint32_t uid = 0;
  RecordVerdict verdict = RecordVerdict::kNone;
  PartRecord record;  // for kRecord
};

enum class Ownership : uint8_t {
  // The parts are the stub's.
  kOwned,
  // The machine failed while the file was made: it is an empty file.
  kNeverSynced,
  // A stub of format 1 in a volume of format 2.
  kOldFormat,
  // The stub lies in another inode than it says: a copy, or forged.
  kCopy,

  // From here on, `device_index` is the part. It is missing.
  kPartMissing,
  // It names no stub, or has no record, or a damaged one.
  kPartUnbound,
  // It names another stub.
  kPartOfAnother,
  // It has another owner than the stub.
  kOwnerDiffers,
  // It belongs on another device, or to a file with another striping.
  kMisplaced,
  // It is older than the stub: from an older copy of the device.
  kStale,
  // It is newer than the stub: the stub is from an older copy of the volume's directory.
  kStubStale,
};

struct OwnershipVerdict {
  Ownership ownership = Ownership::kOwned;
  uint32_t device_index = 0;

  bool is_owned() const { return ownership == Ownership::kOwned; }
  friend bool operator==(const OwnershipVerdict&, const OwnershipVerdict&) = default;
};

// One line for a person: the problem, and the remedy.
const char* describe(Ownership ownership);

// Whether `named` names the inode `seen`. A name without a birth time comes from a filesystem that
// has none.
bool is_identity(const StubIdentity& named, const StubIdentity& seen);

// The two halves of verify_ownership(), for a caller that checks one part after the other. After
// kNeverSynced from verify_part() the other parts must still be checked.
Ownership verify_stub(const Layout& stub, const StubSeen& seen, uint32_t volume_format);
Ownership verify_part(const Layout& stub, const StubSeen& seen, const PartSeen& part,
                      uint32_t device_index);

// `parts` has N elements, in the order of the devices. `volume_format`: 1 or 2.
OwnershipVerdict verify_ownership(const Layout& stub, const StubSeen& seen,
                                  std::span<const PartSeen> parts, uint32_t volume_format);

}  // namespace graphlane
