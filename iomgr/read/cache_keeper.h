// CacheKeeper: a thread that returns a cache's memory. The kernel cannot reclaim its frames,
// and an idle daemon never looks at its own budget.
//
// Every second, while the cache has memory, it adjusts the budget to the free memory. After a
// minute without use it empties the cache. Under memory pressure it adjusts the budget at once.
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

  // Starts the thread. Destroy this before the cache.
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
