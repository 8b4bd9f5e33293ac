#include "iomgr/volume/stub/ownership.h"

namespace graphlane {
namespace {

// Whether the machine failed between the part's record and its owner. Either the record names the
// stub, or it says `making`. So no other file's part is taken for it.
bool was_being_made(const Layout& stub, const StubSeen& seen, const PartSeen& part) {
  if (!stub.is_new || part.verdict != RecordVerdict::kRecord) return false;
  if (part.record.stub == StubIdentity{}) return (part.record.flags & PartRecord::kMaking) != 0;
  return part.record.stub == stub.identity && part.uid != seen.uid;
}

// Checks an existing part, for a stub of format 2.
Ownership verify_bound_part(const Layout& stub, const StubSeen& seen, const PartSeen& part,
                            uint32_t device_index) {
  const PartRecord& record = part.record;
  if (was_being_made(stub, seen, part)) return Ownership::kPartUnbound;
  if (part.uid != seen.uid) return Ownership::kOwnerDiffers;
  if (part.verdict != RecordVerdict::kRecord) return Ownership::kPartUnbound;
  if (record.stub == StubIdentity{}) return Ownership::kPartUnbound;
  if (record.stub != stub.identity) return Ownership::kPartOfAnother;
  if (record.ordinal != device_index || record.geometry != stub.geometry) {
    return Ownership::kMisplaced;
  }
  // Compares serial numbers: "ahead" means by less than half of the range, also past 2^32.
  const auto ahead = static_cast<int32_t>(record.generation - stub.generation);
  if (ahead < 0) return Ownership::kStale;
  return ahead <= 1 ? Ownership::kOwned : Ownership::kStubStale;
}

}  // namespace

const char* describe(Ownership ownership) {
  switch (ownership) {
    case Ownership::kOwned: return "the parts are the stub's own";
    case Ownership::kNeverSynced: return "was never synced: an empty file";
    case Ownership::kOldFormat:
      return "a stub of format 1; `graphlane check --upgrade` binds it to its parts, or says why "
             "not";
    case Ownership::kCopy:
      return "a copy of a stub, which has no parts of its own (`graphlane adopt` if the volume was "
             "restored or moved)";
    case Ownership::kPartMissing: return "the part is missing";
    case Ownership::kPartUnbound: return "the part does not say whose it is";
    case Ownership::kPartOfAnother: return "the part belongs to another stub";
    case Ownership::kOwnerDiffers: return "the stub's owner does not own the part";
    case Ownership::kMisplaced: return "the part belongs in another place (swapped?)";
    case Ownership::kStale:
      return "the part is older than the file (of an older copy of the device?)";
    case Ownership::kStubStale:
      return "the part is newer than the stub (of an older copy of the volume's directory?)";
  }
  return "unknown";
}

bool is_identity(const StubIdentity& named, const StubIdentity& seen) {
  return named.inode != 0 && named.inode == seen.inode &&
         (named.born == 0 || named.born == seen.born);
}

Ownership verify_stub(const Layout& stub, const StubSeen& seen, uint32_t volume_format) {
  if (stub.format == kStubFormatUnbound) {
    return volume_format == 1 ? Ownership::kOwned : Ownership::kOldFormat;
  }
  return is_identity(stub.identity, seen.identity) ? Ownership::kOwned : Ownership::kCopy;
}

Ownership verify_part(const Layout& stub, const StubSeen& seen, const PartSeen& part,
                      uint32_t device_index) {
  Ownership found = Ownership::kPartMissing;
  if (part.is_there && stub.format == kStubFormatUnbound) {
    found = part.uid == seen.uid ? Ownership::kOwned : Ownership::kOwnerDiffers;
  } else if (part.is_there) {
    found = verify_bound_part(stub, seen, part, device_index);
  }
  const bool is_lost = found == Ownership::kPartMissing || found == Ownership::kPartUnbound;
  return stub.is_new && is_lost ? Ownership::kNeverSynced : found;
}

OwnershipVerdict verify_ownership(const Layout& stub, const StubSeen& seen,
                                  std::span<const PartSeen> parts, uint32_t volume_format) {
  OwnershipVerdict verdict{.ownership = verify_stub(stub, seen, volume_format)};
  // A lost part says nothing about the others, so the loop goes on.
  for (uint32_t d = 0;
       d < parts.size() && (verdict.is_owned() || verdict.ownership == Ownership::kNeverSynced);
       ++d) {
    const Ownership found = verify_part(stub, seen, parts[d], d);
    const bool is_first = verdict.is_owned() || found != Ownership::kNeverSynced;
    if (found != Ownership::kOwned && is_first) verdict = {.ownership = found, .device_index = d};
  }
  if (verdict.is_owned()) verdict.device_index = 0;
  return verdict;
}

}  // namespace graphlane
