// ReadAhead: what streams will want next, begun while nobody waits for it
// (CSMqGraph §3.3).
//
//   begin(forecast, devices) ──► frames of its own ──► IoEngine::start() ──► returns
//   join(frame)     ──► there, or on its way: to be waited for, and driven
//
// Its memory is beside the cache's, so that what is read once does not push out what
// comes back; the cache is offered a frame when it is used.
//
// Threads: everything but init() is safe from any. Nothing may be under way at the end.
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
  // Takes so much memory at most. ENOMEM: it is too little; then nothing is begun.
  Result<void> init(uint64_t bytes, PrefetchTracker& table);

  // How far it may be ahead.
  uint64_t reach_bytes() const { return reach_bytes_.load(std::memory_order_relaxed); }

  // Begins what of it is in neither cache, and on these devices, if that is worth it.
  void begin(const ExtentFile& file, const PrefetchTracker::Forecast& forecast, DeviceSet devices,
             FrameCache& cache, IoEngine& engine);

  // kHit, kWait, or kBypass: it was not read ahead.
  Reservation join(const FrameKey& key) {
    const bool begun = begun_.load(std::memory_order_relaxed);
    return begun ? frames_->reserve(key, Admission::kNone) : Reservation{};
  }

  // So much memory from now on, or what init() took; gives back what is over.
  void resize(uint64_t bytes);
  uint64_t resident_bytes() const { return frames_ ? frames_->stats().resident_bytes : 0; }
  uint64_t fetched_bytes() const { return fetched_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kFramesMax = 64;  // of a batch
  static constexpr uint32_t kBatchCount = 16;  // under way at once
  static constexpr uint32_t kLooksMax = 256;  // at frames, for those that are missing

  struct Batch final : Completion {
    void on_done(int error) override;

    std::atomic<bool> taken{false};
    ReadAhead* owner = nullptr;
    FrameKey key;             // of any frame
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
  PrefetchTracker* table_ = nullptr;
  uint64_t bytes_max_ = 0;
  std::atomic<bool> begun_{false};  // anything yet: most have no such devices
  std::atomic<uint64_t> reach_bytes_{0};
  std::atomic<uint64_t> fetched_bytes_{0};
  Batch batches_[kBatchCount];
};

}  // namespace graphlane
