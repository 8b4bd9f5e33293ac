// Tells the process that closes files after the command (cli/run/closer.h) which files are changed; if
// there is none, the volume's server (iomgr/server/late_closer.h).
#pragma once

#include "shim/fd/open_file.h"

namespace graphlane::shim {

// Call it before the first change of a file without a mount. Does nothing later, or without either.
void tell_of_change(const OpenFile& file);

}  // namespace graphlane::shim
