// change_kind: makes a plain file striped, or a striped one plain, after a rename (volume/kind.h), in
// a volume that is in use.
//
//   the file     NAME ──────────────┐                  ┌──► removed, with its parts
//                                   ├─ one exchange ───┤
//   its copy     .graphlane/tmp/… ──┘    of names      └──► NAME
//                copied, synced
//
// The copy has the file's bytes, owner, mode, times and extended attributes, but another inode number.
// After a kill at any instruction NAME is whole, of either kind; check_volume() with repair removes the
// rest.
//
// No process may have the file open at the exchange, because it would go on with the old inode. For a
// plain file a lease says so (base/files/file_lease.h), for a striped one its locks (stub_lock.h).
// Others may read it while it is copied. A writer ends the copy, after some milliseconds.
//
// A file keeps its kind if something of it would be lost; the error says what. Reasons: several names,
// an access control list, attributes that this process may not set, no room.
#pragma once

#include <functional>

#include "iomgr/base/files/tree.h"
#include "iomgr/volume/kind.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

enum class KindChange {
  kDone,
  kRight,  // it has the kind of its name, and needs none
  kBusy,   // it is open, or was changed meanwhile
};

struct KindChangeOptions {
  // An error ends the copy. Called from several threads. Null: nothing ends it.
  std::function<Outcome<void>()> go_on = {};
  // Called when the name leads to the copy, and the old inode still has a name. May be null.
  std::function<void()> exchanged = {};
};

// `place` is below the volume's root. An error says why the file keeps its kind.
Outcome<KindChange> change_kind(const Volume& volume, const TreePlace& place, FileKind to,
                                const KindChangeOptions& options = {});

}  // namespace graphlane
