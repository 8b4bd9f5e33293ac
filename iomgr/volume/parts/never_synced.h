// Parts for a file that was never synced.
//
//   power cut ──► stub (new)   part 0: exists   part 1: missing   part 2: names no stub
//
//   to read                    an empty file: an empty stand-in for each part
//
//   to write                   part 0: cut to 0; part 1: made; part 2: made anew   ──► an empty file
//
// An open for writing completes the parts first. An open for reading shows an empty file and
// changes nothing. Both need kNeverSynced from verify_named_parts(), which checks all parts. A part
// of another stub, or a synced one, makes the file a damaged one.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <span>

#include "iomgr/volume/parts/part_files.h"

namespace graphlane {

// Gives the stub complete, empty parts of its own, not durable yet. Complete parts stay unchanged.
// `stub_fd` is the stub, or O_PATH; the caller needs the right to write it. A kill at any point
// leaves a never-synced file or a complete one. One process at a time may do this for a stub.
// Returns 0 or an errno. EBUSY: another process does it; EIO: the file was synced; ENOENT: it has
// no name left.
int remake_parts(std::span<const int> roots, const Layout& layout, int stub_fd,
                 const PartsOwner& owner);

// Makes an empty, unwritable file that stands for a part.
Fd empty_stand_in();

}  // namespace graphlane
