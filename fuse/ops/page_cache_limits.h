// The kernel's read-ahead and its limit of dirty pages for a mount.
//
// The kernel's defaults are for filesystems that it does not trust. It reads 128 KiB ahead and cuts
// every buffered read into requests of that size. A program that writes, also through a mapping,
// waits once a hundredth of all allowed dirty pages are the mount's.
#pragma once

#include <sys/types.h>

#include "iomgr/volume/volume.h"

namespace graphlane::fuse {

// As root: raises both for the volume's mount with st_dev `device`, by the memory available to this
// process. Without root the kernel's defaults stay.
void raise_page_cache_limits(dev_t device, const Volume& volume);

}  // namespace graphlane::fuse
