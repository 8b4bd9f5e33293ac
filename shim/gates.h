// The gates of the devices that this process reads (iomgr/device_gate.h): two
// volumes on one disk have the same.
#pragma once

#include "iomgr/device_gate.h"

namespace graphlane {

// The gate of the device that the part lies on; null if there are too many devices.
// Under the SlowLock.
DeviceGate* gate_of(int part_fd);

}  // namespace graphlane
