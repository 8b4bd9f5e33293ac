// MappedCache: a FrameCache with memory of its own, which the kernel gives it page by
// page as frames are filled.
//
// One that **yields** leaves every frame that has been filled to the kernel, should it need
// memory (MADV_FREE, Linux 4.12): its pages then go as those of the page cache do, before
// anybody is killed. A page that has gone reads as zeros, and nothing but the next fill
// changes that. So of each page one byte that is not zero is noted, and who has copied looks
// for it: if it is there, all of the page was. (A page of zeros can lose nothing.)
//
//   cache.claim(fill);  read into fill.bytes();  cache.leave(fill, n);  fill.publish(n)
//   copy from pin.bytes();  if (cache.lost(pin, begin, n)) what was copied is void
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
  Result<void> map(uint64_t bytes, const CacheOptions& options, bool yields = false);

  explicit operator bool() const { return memory_ != nullptr; }
  FrameCache& operator*() { return cache_; }
  FrameCache* operator->() { return &cache_; }
  const FrameCache* operator->() const { return &cache_; }

  // Of one that does not yield, these do nothing.

  // Before the fill: what is read into the frame stays.
  void claim(const Fill& fill);
  // After it, before others see the frame: the kernel may take its pages. The first
  // `valid_bytes` are the file's.
  void leave(const Fill& fill, uint64_t valid_bytes);
  // After copying these bytes of the frame: some of it had gone. Then nobody finds it again.
  bool lost(const Pin& pin, uint64_t begin, uint64_t length_bytes);

 private:
  uint16_t* notes_of(const FrameHold& hold) const;

  FrameCache cache_;
  void* memory_ = nullptr;
  uint64_t memory_bytes_ = 0;
  uint16_t* notes_ = nullptr;  // of each page where a byte is that is not zero; null: yields not
};

}  // namespace graphlane
