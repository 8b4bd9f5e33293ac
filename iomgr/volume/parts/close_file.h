// Closes a striped file whose writer has gone without doing so: its parts are synced, the blocks
// that changed get checksums, and the stub says `closed` (volume/parts/live_file.h).
//
// Another process that wants to write the file meanwhile need not wait: this one gives way.
#pragma once

#include <string>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

// `path` is that of the file in its volume's directory. Whether there was something to do. EBUSY: a
// process writes the file, or has asked for it.
Outcome<bool> close_file(const std::string& path);
// As above, for a stub of this volume that is open for reading and writing. `name` is for messages.
Outcome<bool> close_file(const Volume& volume, Fd stub, const std::string& name);

}  // namespace graphlane
