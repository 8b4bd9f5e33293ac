// The memory that this process may still use, and the choice that follows from it. A file that
// fits goes through the page cache, so that a second sweep is as warm as on plain files. A
// larger file bypasses it (O_DIRECT), because a cyclic sweep under LRU would never hit.
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

// Whether to read a file of `size_bytes` past the page cache. `asked`: the
// program itself opened it with O_DIRECT.
bool wants_direct(IoMode mode, uint64_t size_bytes, bool asked);
// As above, with known free memory.
bool wants_direct(IoMode mode, uint64_t size_bytes, bool asked, uint64_t available_bytes);

}  // namespace graphlane
