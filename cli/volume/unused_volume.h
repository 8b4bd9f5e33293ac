// Whether a volume may be taken apart: no mount and no server uses it.
#pragma once

#include "iomgr/base/fd.h"
#include "iomgr/volume/volume.h"

namespace graphlane::cli {

// EBUSY: a mount or a server uses the volume. While the descriptor is open, no server can start.
Outcome<Fd> check_unused(const Volume& volume);

}  // namespace graphlane::cli
