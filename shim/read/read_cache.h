// The process's cache for reads past the page cache (iomgr/read/extent_cache.h).
//
// Threads: everything is safe from any; signals are blocked meanwhile.
#pragma once

#include <cstddef>
#include <optional>

#include "iomgr/read/extent_cache.h"
#include "shim/fd/open_file.h"

namespace graphlane::shim {

// Reads through the cache, as ExtentCache::read(). Nothing also without a cache (GRAPHLANE_CACHE=0,
// or in a forked child), while the file is being changed, and if the caller's memory is not all
// mapped, which the kernel must report.
std::optional<size_t> read_cached(const OpenFileRef& file, ByteRange range, void* buffer,
                                  IoEngine& engine);

// The range will be read soon; as ExtentCache::will_need().
void will_need_cached(const OpenFileRef& file, ByteRange range, IoEngine& engine);

// Pauses the cache while reads are shared, because they need no copy here. Resumes it when nothing
// was shared for a while. `now_ms` is of a monotonic clock. `engine` completes what is
// in flight.
void follow_sharing(bool shares, int64_t now_ms, IoEngine& engine);

// The cache's counts; all zero if it was not used.
ExtentCacheStats read_cache_stats();

}  // namespace graphlane::shim
