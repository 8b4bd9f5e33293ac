// verify_ownership(): whether the parts that a stub names are its own. The one rule by which a
// mount, the preload library, the servers and the tools believe a stub.
//
//   the stub's content       names an inode         must be the inode that it lies in
//   each part's record       names an inode         must be the same one
//                            names its place        device, N, f, S as the stub and the volume have them
//                            has a generation       the stub's, or one more
//   each part                has an owner           the stub's owner, root's stubs too
//
// Every reader can check that without a privilege and without a secret. A copy of a stub lies in another
// inode; no part names a forged one. A stub that fails is refused (EIO), never taken for a plain
// file. Its name can be removed, replaced or emptied, and takes no parts along.
//
// Generations. A close of the file gives each part the next generation, syncs the parts, and then says
// the same in the stub. So parts are at the stub's generation or one ahead, whatever was interrupted. A
// part that is behind comes from an older copy of its device.
//
// A stub of format 1 names no inode. In a volume of format 1 it is believed if the owners are equal, and
// is read only; in a volume of format 2 it is refused (`graphlane check --upgrade` binds it).
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
  kOwned,          // the parts are the stub's
  kNeverSynced,    // a file that was being made when the machine failed: an empty file
  kOldFormat,      // a stub of format 1 in a volume of format 2
  kCopy,           // the stub lies in another inode than it says: a copy, or forged
  kPartMissing,    // this and all below: `device_index` says which part
  kPartUnbound,    // the part names no stub, or has no record, or a damaged one
  kPartOfAnother,  // the part names another stub
  kOwnerDiffers,   // the part has another owner than the stub
  kMisplaced,      // the part belongs on another device, or to a file striped otherwise
  kStale,          // the part is older than the stub: of an older copy of the device
  kStubStale,      // the stub is older than its parts: of an older copy of the volume's directory
};

struct OwnershipVerdict {
  Ownership ownership = Ownership::kOwned;
  uint32_t device_index = 0;

  bool is_owned() const { return ownership == Ownership::kOwned; }
  friend bool operator==(const OwnershipVerdict&, const OwnershipVerdict&) = default;
};

// One line for a person: what is wrong, and what to do.
const char* describe(Ownership ownership);

// Whether `seen` is the inode that `named` names. A name without a birth time was made on a
// filesystem that has none.
bool is_identity(const StubIdentity& named, const StubIdentity& seen);

// The two halves of verify_ownership(), for a caller that looks at one part after the other. The
// second one returns kNeverSynced: the parts before it may be there.
Ownership verify_stub(const Layout& stub, const StubSeen& seen, uint32_t volume_format);
Ownership verify_part(const Layout& stub, const StubSeen& seen, const PartSeen& part, uint32_t device_index);

// `parts` are N, in the order of the devices. `volume_format`: 1 or 2.
OwnershipVerdict verify_ownership(const Layout& stub, const StubSeen& seen,
                                  std::span<const PartSeen> parts, uint32_t volume_format);

}  // namespace graphlane
