// The memory that this process may still use, and what of it caches take. Whether a file fits is
// decided in iomgr/read/plan.h.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/base/result.h"

namespace graphlane {

enum class IoMode { kAuto, kDirect, kBuffered };

// "auto", "direct", "buffered"; EINVAL for another name.
Result<IoMode> parse_io_mode(const char* name);

// Bytes of free memory: the least of what the machine has available and what each memory cgroup
// (v1 or v2) of this process leaves. A cgroup's limit is memory.max or, if lower, memory.high,
// where the kernel begins to throttle. Unmapped page cache counts as free. `root`: where /proc
// and /sys are.
uint64_t memory_available_bytes(const char* root = "");

}  // namespace graphlane
