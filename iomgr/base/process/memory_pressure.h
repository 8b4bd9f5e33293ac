// Memory pressure: the kernel reports that programs had to wait for memory (PSI, Linux 5.2).
#pragma once

#include "iomgr/base/fd.h"

namespace graphlane {

// A descriptor to poll for POLLPRI: programs of this process's memory cgroup (v2), or of the
// machine, have waited for a tenth of a second within two seconds. Empty: the kernel has no PSI.
// `root`: where /proc and /sys are.
Fd watch_memory_pressure(const char* root = "");

}  // namespace graphlane
