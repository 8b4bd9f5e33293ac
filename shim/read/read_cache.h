// The process's cache of what it reads past the page cache (iomgr/read/extent_cache.h).
//
// Threads: everything is safe from any; signals are held while it is used.
#pragma once

#include <cstddef>
#include <optional>

#include "iomgr/read/extent_cache.h"
#include "shim/fd/open_file.h"

namespace graphlane {

// Reads by way of the cache; as ExtentCache::read(). Nothing, too, where there is no cache:
// GRAPHLANE_CACHE=0, in a child by fork, while somebody changes the file, or when the
// caller's memory is not all there, which the kernel has to say.
std::optional<size_t> read_cached(const OpenFileRef& file, ByteRange range, void* buffer,
                                  IoEngine& engine);

// The range will be read soon; as ExtentCache::will_need().
void will_need_cached(const OpenFileRef& file, ByteRange range, IoEngine& engine);

// What is shared with other processes needs no copy here: gives the memory back, and takes it
// again when nothing was shared for a while. `now_ms`: of a monotonic clock; `engine`: who ends what is
// on its way.
void give_way_to_sharing(bool shares, int64_t now_ms, IoEngine& engine);

// Whether all of the memory may be written: copying into what may not would be a
// signal, where read(2) fails with EFAULT.
bool is_there(void* buffer, size_t count);

// What it has done; all zero if it was not used.
ExtentCacheStats read_cache_stats();

}  // namespace graphlane
