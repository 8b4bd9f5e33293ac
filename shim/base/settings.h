// The settings in the environment, read once.
//
//   GRAPHLANE_IO=auto|direct|buffered
//   GRAPHLANE_BACKEND=auto|io_uring|libaio|threads
//   GRAPHLANE_DEPTH=N                   I/Os per device at once, past the page cache
//
//   GRAPHLANE_CACHE=auto|0|SIZE         memory for reads past the page cache
//   GRAPHLANE_CACHE_POLICY=scan-resistant|lru|fifo|hot-aware
//
//   GRAPHLANE_SHARE=auto|no|map         shares reads by the mount's memory; map: maps the pages into
//                                       the buffers instead of a copy (mapped_pages.h)
//
//   GRAPHLANE_VERIFY=scrub|read         read: verifies the checksum of each read from a device
//
//   GRAPHLANE_DISABLE=lanes,merging,prefetch,cache,packing   switches them off, to measure each
//
//   GRAPHLANE_REPORT=1 (stderr) or a file, to which one JSON line is appended
#pragma once

#include "iomgr/base/process/memory_limit.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/read/extent_cache.h"

namespace graphlane::shim {

// When reads are verified without a mount. Over a mount the mount decides.
enum class Verify : uint8_t { kByVolume, kScrub, kRead };

struct Settings {
  IoMode io_mode = IoMode::kAuto;
  IoBackend backend = IoBackend::kAuto;
  uint32_t depth = 0;                             // 0: as calibrated, or by the kind of device
  ExtentCacheOptions cache{.reclaimable = true};  // a budget of 0: no cache
  bool shares = true;
  bool maps = false;
  bool lanes = true;  // a disk serves one request at a time
  Verify verify = Verify::kByVolume;
  bool merging = true;            // merges stripe units that are adjacent on a device
  const char* report = nullptr;   // null: no report
  const char* mounter = nullptr;  // iomgr/server/mount_request.h
  const char* program = nullptr;
  bool no_mount = false;
  const char* changes = nullptr;   // null: no process closes files later
  const char* reported = nullptr;  // a socket to notify after the report
};

const Settings& settings();

}  // namespace graphlane::shim
