// ReadAhead: prefetches for streams, without waiting (CSMqGraph §3.3).
//
//   begin(forecast, devices) ──► own frames ──► IoEngine::submit() ──► returns
//
//   join(frame)              ──► a hit, or in flight: the reader waits, and polls the engine
//
// Its frames are separate from the cache's, so that data read once does not evict data that
// is reused. The cache is offered a frame when it is used.
//
// Threads: everything but init() is safe from any. Nothing may be in flight when it is destroyed.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/cache/mapped_cache.h"
#include "iomgr/io/engine.h"
#include "iomgr/read/extent_file.h"
#include "iomgr/read/prefetch_tracker.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

class ReadAhead {
 public:
  // Takes at most so much memory. ENOMEM: too little memory; then there are no prefetches.
  Result<void> init(uint64_t bytes, PrefetchTracker& prefetches);

  // How far it may prefetch.
  uint64_t reach_bytes() const { return reach_bytes_.load(std::memory_order_relaxed); }

  // Prefetches what is in neither cache, on these devices only, if that is worth a request.
  void begin(const ExtentFile& file, const PrefetchTracker::Forecast& forecast, DeviceSet devices,
             FrameCache& cache, IoEngine& engine);

  // kHit, kWait, or kBypass: the frame was not prefetched.
  Reservation join(const FrameKey& key) {
    const bool begun = begun_.load(std::memory_order_relaxed);
    return begun ? frames_->reserve(key, Admission::kNone) : Reservation{};
  }

  // Limits the memory, within what init() took; reclaims the rest.
  void resize(uint64_t bytes);
  uint64_t resident_bytes() const { return frames_ ? frames_->stats().resident_bytes : 0; }
  uint64_t fetched_bytes() const { return fetched_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kFramesMax = 64;   // per batch
  static constexpr uint32_t kBatchCount = 16;  // in flight
  static constexpr uint32_t kLooksMax = 256;   // frames checked per call

  struct Batch final : Completion {
    void on_done(int error) override;

    std::atomic<bool> taken{false};
    ReadAhead* owner = nullptr;
    FrameKey key;             // the file's; frame_index is of any frame
    uint64_t size_bytes = 0;  // of the file
    uint32_t count = 0;
    Piece pieces[kFramesMax];
    Fill fills[kFramesMax];
  };

  class Walk;
  uint64_t missing_frames(const ExtentFile& file, const PrefetchTracker::Forecast& forecast,
                          DeviceSet devices, FrameCache& cache);
  bool fill(const ExtentFile& file, Walk& walk, DeviceSet devices, FrameCache& cache,
            uint64_t* left, Batch& batch);
  bool start(const ExtentFile& file, Batch& batch, IoEngine& engine);

  MappedCache frames_;
  PrefetchTracker* prefetches_ = nullptr;
  uint64_t bytes_max_ = 0;
  std::atomic<bool> begun_{false};  // whether anything was prefetched; often no device allows it
  std::atomic<uint64_t> reach_bytes_{0};
  std::atomic<uint64_t> fetched_bytes_{0};
  Batch batches_[kBatchCount];
};

}  // namespace graphlane
