// The preload library in the environment: set for the command of `run`, and removed from this
// program itself.
#pragma once

#include <string>

#include "iomgr/base/error.h"

namespace graphlane::cli {

// If the library was preloaded into this program, starts it again without, because commands must
// see stubs as they are.
void shed_preload(char** argv);

// libgraphlane.so, as installed (BIN/../lib/graphlane) or built (BIN/../lib).
Outcome<std::string> find_preload_library();

// Prepends the library to LD_PRELOAD.
Outcome<void> prepend_preload(const std::string& library);

}  // namespace graphlane::cli
