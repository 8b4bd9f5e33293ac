// Tells the process that closes files after the command (cli/run/closer.h) which files are changed.
#pragma once

#include "shim/fd/open_file.h"

namespace graphlane::shim {

// Call it before the first change of a file without a mount. Does nothing later, or without a closer.
void tell_of_change(const OpenFile& file);

}  // namespace graphlane::shim
