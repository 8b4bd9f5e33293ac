// The preload library and the environment: what `run` sets, and what this
// program itself must not have.
#pragma once

#include <string>

#include "iomgr/base/error.h"

namespace graphlane::cli {

// Starts this program again without our library if it was preloaded into it:
// stubs are to be seen here as they are.
void shed_preload(char** argv);

// libgraphlane.so as installed (BIN/../lib/graphlane) or built (BIN/../lib).
Outcome<std::string> find_preload_library();

// LD_PRELOAD with the library in front of what is there.
Outcome<void> prepend_preload(const std::string& library);

}  // namespace graphlane::cli
