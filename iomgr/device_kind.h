// What kind of device a file lies on, and what follows from it.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/types.h>

namespace graphlane {

// Whether /sys/dev/block says that a filesystem lies on a disk. A partition's queue
// is its disk's; what has no block device counts as fast.
bool is_rotational(dev_t filesystem);

}  // namespace graphlane
