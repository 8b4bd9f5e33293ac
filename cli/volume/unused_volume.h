// Whether a volume may be taken apart: no mount and no server uses it.
#pragma once

#include "iomgr/base/fd.h"
#include "iomgr/volume/volume.h"

namespace graphlane::cli {

// EBUSY: a mount uses the volume, or a server or program still does so after three seconds. While
// the descriptor is open, no server can start.
Outcome<Fd> check_unused(const Volume& volume);

}  // namespace graphlane::cli
