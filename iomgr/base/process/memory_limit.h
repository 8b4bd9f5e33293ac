// How much memory this process may still use, and what follows from it: a file
// that fits goes through the page cache, so that a second sweep is as warm as
// on plain files; a larger one goes past it (O_DIRECT), because a cyclic sweep
// under LRU would find nothing of it again.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/base/result.h"

namespace graphlane {

enum class IoMode { kAuto, kDirect, kBuffered };

// "auto", "direct", "buffered"; EINVAL for another name.
Result<IoMode> parse_io_mode(const char* name);

// Bytes: the smallest of what the machine has available and what every memory
// cgroup (v1 or v2) above this process leaves below its limit, or where the kernel begins to
// slow its programs down (memory.high); page cache that nobody has mapped is
// counted as free. `root`: where /proc and /sys are.
uint64_t memory_available_bytes(const char* root = "");

// What a cache may have of `room_bytes`, which are what is available and what it holds
// already: half of what there is beyond 128 MiB.
uint64_t cache_budget_of(uint64_t room_bytes);
// One that yields what it keeps where programs need more (mapped_cache.h): all but an
// eighth, 16 MiB at least.
uint64_t yielding_budget_of(uint64_t room_bytes);
// One whose bytes are the page cache's: five eighths, as its pages push out others that programs
// have mapped.
uint64_t page_cache_budget_of(uint64_t room_bytes);
// One that was told how much it may have, whatever others take: all but 32 MiB. Less than it was
// told that is only where memory is really short.
uint64_t given_budget_of(uint64_t room_bytes);

// Whether to read a file of `size_bytes` past the page cache. `asked`: the
// program itself opened it with O_DIRECT.
bool wants_direct(IoMode mode, uint64_t size_bytes, bool asked);
// The same for who knows what memory there is.
bool wants_direct(IoMode mode, uint64_t size_bytes, bool asked, uint64_t available_bytes);

}  // namespace graphlane
