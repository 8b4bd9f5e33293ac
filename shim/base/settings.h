// What the environment says, read once.
//
//   GRAPHLANE_IO=auto|direct|buffered
//   GRAPHLANE_BACKEND=auto|io_uring|libaio|threads
//   GRAPHLANE_DEPTH=N                   I/Os that a device has at once, past the page cache
//   GRAPHLANE_CACHE=auto|0|SIZE         memory for what is read past the page cache
//   GRAPHLANE_CACHE_POLICY=scan-resistant|lru|fifo|hot-aware
//   GRAPHLANE_SHARE=auto|no|map         what several processes read, by the mount's memory; map:
//                                       shown in their buffers, not copied (mapped_pages.h)
//   GRAPHLANE_VERIFY=scrub|read         read: what comes from a device is compared with its checksum first
//   GRAPHLANE_DISABLE=lanes,merging,prefetch,cache,packing   some of it, to see what each is good for
//   GRAPHLANE_REPORT=1 (stderr) or a file, to which one JSON line is added
#pragma once

#include "iomgr/base/process/memory_limit.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/read/extent_cache.h"

namespace graphlane {

// When reads are verified without a mount. Over one, the mount decides.
enum class Verify : uint8_t { kByVolume, kScrub, kRead };

struct Settings {
  IoMode io_mode = IoMode::kAuto;
  IoBackend backend = IoBackend::kAuto;
  uint32_t depth = 0;  // 0: as calibrated, or by the kind of device
  ExtentCacheOptions cache{.reclaimable = true};  // a budget of 0: none
  bool shares = true;
  bool maps = false;
  bool lanes = true;    // a disk serves one request at a time
  Verify verify = Verify::kByVolume;
  bool merging = true;  // of stripe units that adjoin on a device
  const char* report = nullptr;  // null: none wanted
  const char* mounter = nullptr;   // iomgr/server/mount_request.h
  const char* program = nullptr;
  bool no_mount = false;
  const char* reported = nullptr;  // a socket that is told of it
};

const Settings& settings();

}  // namespace graphlane
