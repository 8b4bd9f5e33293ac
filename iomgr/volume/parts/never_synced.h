// Parts for a file that was never synced.
//
//   power cut ──► stub (new)   part 0: there   part 1: missing   part 2: names no stub
//   to read                    an empty file: an empty stand-in for each part
//   to write                   part 0: cut to 0; part 1: made; part 2: made anew   ──► an empty file
//
// An open for writing makes the parts whole first. An open for reading shows an empty file and changes
// nothing. Both need verify_named_parts() to say kNeverSynced, which looks at all parts: one
// that belongs to another stub, or that was synced, makes the file a damaged one.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <span>

#include "iomgr/volume/parts/part_files.h"

namespace graphlane {

// Gives the stub whole, empty parts that are its own, not durable yet. `stub_fd` is the stub, or O_PATH; we must
// have the right to write it. A stub whose parts are all there is left as it is. Stopped anywhere, the file is
// still one that was never synced, or a whole one. One process at a time does this for a stub. 0 or an errno:
// EBUSY, another process is at it; EIO, the file is not one that was never synced; ENOENT, it has no name any more.
int remake_parts(std::span<const int> roots, const Layout& layout, int stub_fd, const PartsOwner& owner);

// Makes an empty file that cannot be written, to stand for a part.
Fd empty_stand_in();

}  // namespace graphlane
