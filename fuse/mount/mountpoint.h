// The paths at which a volume may be mounted.
#pragma once

#include <string>

#include "iomgr/base/error.h"

namespace graphlane::fuse {

// An absolute path without symbolic links. The last name may be a dead mount.
Outcome<std::string> absolute_mountpoint(const std::string& path);

}  // namespace graphlane::fuse
