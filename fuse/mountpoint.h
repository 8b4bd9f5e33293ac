// Where a volume may be mounted, in paths.
#pragma once

#include <sys/types.h>

#include <string>

#include "iomgr/base/error.h"

namespace graphlane {

// Absolute, without symbolic links; the last name may be a dead mount.
Outcome<std::string> absolute_mountpoint(const std::string& path);

// As root: how far ahead the kernel reads on the mount of device `device`
// (st_dev). 128 KiB, its default, would cut every buffered read into requests
// of that size.
void raise_read_ahead(dev_t device);

}  // namespace graphlane
