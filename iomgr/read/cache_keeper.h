// CacheKeeper: gives the memory of a cache back that nobody else would take: frames are
// not the kernel's to reclaim, and a daemon that nobody asks anything looks at nothing.
//
// Every second, while the cache has memory: its budget by what is left; and all of it back
// when it was not used for a minute. Where the kernel tells that programs wait for memory, its
// budget at once.
#pragma once

#include <chrono>
#include <thread>

#include "iomgr/base/fd.h"
#include "iomgr/base/process/memory_pressure.h"
#include "iomgr/read/extent_cache.h"

namespace graphlane {

class CacheKeeper {
 public:
  using Duration = std::chrono::milliseconds;

  // Starts the thread. Before the cache goes, this must.
  explicit CacheKeeper(ExtentCache& cache, Duration interval = std::chrono::seconds(1),
                       Duration idle_max = std::chrono::minutes(1),
                       Fd pressure = watch_memory_pressure());
  ~CacheKeeper();
  CacheKeeper(const CacheKeeper&) = delete;
  CacheKeeper& operator=(const CacheKeeper&) = delete;

 private:
  void run();
  void look();

  ExtentCache& cache_;
  const Duration interval_;
  const Duration idle_max_;
  Duration idle_{0};
  uint64_t used_before_ = 0;

  const Fd stopping_;  // an eventfd
  Fd pressure_;
  std::thread thread_;
};

}  // namespace graphlane
