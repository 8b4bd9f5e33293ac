// Memory pressure: the kernel tells when programs have waited for memory (PSI, Linux 5.2).
#pragma once

#include "iomgr/base/fd.h"

namespace graphlane {

// To be polled for POLLPRI: programs of this process's memory cgroup (v2), or of the machine, have
// waited for a tenth of a second in two of them. None where the kernel does not tell.
// `root`: where /proc and /sys are.
Fd watch_memory_pressure(const char* root = "");

}  // namespace graphlane
