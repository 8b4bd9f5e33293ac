// The gates of the devices that this process reads (iomgr/io/device_gate.h). Two volumes on one
// disk share one. The width comes from the user (GRAPHLANE_DEPTH), a calibration
// (iomgr/volume/FORMAT.md), or the kind of device.
#pragma once

#include "iomgr/io/device_gate.h"

namespace graphlane::shim {

// The gate of the part's device, below `root`; null: there are too many devices. Under the
// SlowLock.
DeviceGate* gate_of(int part_fd, const char* root);

}  // namespace graphlane::shim
