// KeptFrames: the frames that a cache keeps. They are unpacked at first. Once a sampled frame shows
// that packing is worth it (word_packing.h), a packed cache replaces them, and they are given up.
//
// Threads: everything but start() is safe from any.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <span>

#include "iomgr/base/futex.h"
#include "iomgr/cache/mapped_cache.h"

namespace graphlane {

class KeptFrames {
 public:
  struct Options {
    CachePolicy policy = CachePolicy::kScanResistant;
    bool reclaimable = false;
    bool packs = true;
  };

  explicit KeptFrames(uint64_t frame_bytes) : frame_bytes_(frame_bytes) {}

  // Takes at most so much memory. Call it once; the errors of MappedCache::map().
  Result<void> start(uint64_t bytes_max, const Options& options);

  // The cache to use now. A caller keeps to one during a request.
  MappedCache& current() const {
    // Acquire: the cache that was made before is seen whole.
    return *current_.load(std::memory_order_acquire);
  }
  // Limits the memory, and reclaims the frames above it.
  void resize(uint64_t bytes);
  uint64_t resident_bytes() const { return current().resident_bytes(); }
  // The sum over both caches.
  CacheStats stats() const;

  // A frame's bytes that were just read: starts the packed cache if they pack well.
  void sample(std::span<const std::byte> frame);

 private:
  void begin_to_pack(uint64_t packed_frame_bytes);

  // Constant after start().
  const uint64_t frame_bytes_;
  uint64_t bytes_max_ = 0;
  Options options_;

  MappedCache plain_;
  MappedCache packed_;
  std::atomic<MappedCache*> current_{&plain_};
  std::atomic<uint32_t> sample_count_{0};
  std::atomic<bool> begins_to_pack_{false};
  FutexLock lock_;  // held while the limit or the current cache changes
  uint64_t limit_bytes_ = 0;
};

}  // namespace graphlane
