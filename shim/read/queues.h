// The I/O queues of this process, and the gates of the devices that it reads (iomgr/io/device_gate.h).
// Two volumes on one disk share a gate. Its width comes from the user (GRAPHLANE_DEPTH), a calibration
// (iomgr/volume/FORMAT.md), or the kind of device.
#pragma once

#include "iomgr/io/inline_queues.h"

namespace graphlane::shim {

extern InlineQueues queues;
extern const InlineProcess this_process;

// Whether no ancestor by fork has read striped files.
inline bool is_first_process() { return queues.is_first(this_process); }

// The gate of the part's device, below `root`; null: there are too many devices. Under the SlowLock.
DeviceGate* gate_of(int part_fd, const char* root);

}  // namespace graphlane::shim
