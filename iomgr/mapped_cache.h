// MappedCache: a FrameCache with memory of its own, which the kernel gives it page by
// page as frames are filled.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include "iomgr/cache.h"

namespace graphlane {

class MappedCache {
 public:
  MappedCache() = default;
  ~MappedCache();  // nobody pins a frame
  MappedCache(const MappedCache&) = delete;
  MappedCache& operator=(const MappedCache&) = delete;

  // Room for so many bytes, in whole frames; once. ENOMEM, or as FrameCache::init().
  // A child by fork finds it empty; a core dump is without it.
  Result<void> map(uint64_t bytes, const CacheOptions& options);

  explicit operator bool() const { return memory_ != nullptr; }
  FrameCache& operator*() { return cache_; }
  FrameCache* operator->() { return &cache_; }
  const FrameCache* operator->() const { return &cache_; }

 private:
  FrameCache cache_;
  void* memory_ = nullptr;
  uint64_t memory_bytes_ = 0;
};

}  // namespace graphlane
