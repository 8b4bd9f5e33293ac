// Where a volume may be mounted, in paths.
#pragma once

#include <string>

#include "iomgr/base/error.h"

namespace graphlane {

// Absolute, without symbolic links; the last name may be a dead mount.
Outcome<std::string> absolute_mountpoint(const std::string& path);

}  // namespace graphlane
