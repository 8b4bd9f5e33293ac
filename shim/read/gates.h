// The gates of the devices that this process reads (iomgr/io/device_gate.h): two
// volumes on one disk have the same. How wide they are the user says (GRAPHLANE_DEPTH), or a
// calibration (iomgr/volume/FORMAT.md), or the kind of device.
#pragma once

#include "iomgr/io/device_gate.h"

namespace graphlane {

// The gate of the device that the part lies on, below `root`; null if there are too many devices.
// Under the SlowLock.
DeviceGate* gate_of(int part_fd, const char* root);

}  // namespace graphlane
