#include "iomgr/cache_keeper.h"

namespace graphlane {

CacheKeeper::CacheKeeper(ExtentCache& cache, Duration interval, Duration idle_max)
    : cache_(cache), interval_(interval), idle_max_(idle_max), thread_([this] { run(); }) {}

CacheKeeper::~CacheKeeper() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CacheKeeper::run() {
  for (;;) {
    {
      MutexLock lock(mu_);
      const auto next = std::chrono::steady_clock::now() + interval_;
      while (!stopping_ && std::chrono::steady_clock::now() < next) changed_.wait_until(mu_, next);
      if (stopping_) return;
    }
    look();
  }
}

void CacheKeeper::look() {
  const ExtentCacheStats now = cache_.stats();
  if (now.frames.resident_bytes == 0) return;
  cache_.adjust_budget();
  const uint64_t used = now.found_bytes + now.fetched_bytes + now.passed_bytes;
  idle_ = used == used_before_ ? idle_ + interval_ : Duration{0};
  used_before_ = used;
  if (idle_ >= idle_max_) cache_.clear();
}

}  // namespace graphlane
