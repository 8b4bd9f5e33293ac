// How much of the page cache the kernel may use for a mount, and how far it reads ahead.
//
// Its defaults are for filesystems that it does not trust: it reads 128 KiB ahead, cuts
// every buffered read into requests of that size, and has a program that writes, also
// through a map, wait as soon as a hundredth of what may be dirty in all is.
#pragma once

#include <sys/types.h>

#include "iomgr/volume/volume.h"

namespace graphlane {

// As root: raises both for the volume's mount, of device `device` (st_dev), by the memory that is
// left to this process. Of others the kernel takes no advice; they have what it gives.
void raise_page_cache_limits(dev_t device, const Volume& volume);

}  // namespace graphlane
