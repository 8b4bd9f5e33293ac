// The statistics of a server, as the JSON of user.graphlane.stats:
// {"backend":"io_uring","devices":[{"path":"/mnt/d0","ios":8,"bytes_read":8388608,
//  "bytes_written":0,"segments":8,"merged":2,"wait":[…],"service":[…],
//  "preloaded":{"ios":8,"bytes_read":8388608,"bytes_written":0}}, …],
//  "cache":{"hit_bytes":0, …},"shared":{"hit_bytes":0, …},"sweeps":{"prefetched_bytes":0, …},
//  "checksums":{"verified":0,"unverified":0,"failed":0}}
//
//   wait, service   numbers of I/Os, iomgr/base/latency.h
//   preloaded       iomgr/server/client_counts.h
//   cache           iomgr/read/extent_cache.h
//   shared          iomgr/server/shared_cache.h
//   sweeps          iomgr/read/file_sweeps.h
//   checksums       blocks, iomgr/volume/sum/part_sums.h
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iomgr/io/lanes.h"
#include "iomgr/read/extent_cache.h"
#include "iomgr/read/file_sweeps.h"
#include "iomgr/server/client_counts.h"
#include "iomgr/server/shared_cache.h"

namespace graphlane {

std::string stats_json(const Lanes& lanes, const ExtentCacheStats& cache, const SharedStats& shared,
                       const PrefetchStats& sweeps = {},
                       const std::vector<ClientSum>& preloaded = {});

// A JSON string literal. Bytes other than control characters are copied unchanged.
std::string json_quoted(std::string_view text);

}  // namespace graphlane
