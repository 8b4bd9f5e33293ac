// ExtentReader: executes a request by way of frames, in batches.
//
//   reserve() ──► hit: copied   in flight: waits[]   miss: pieces[]   no frame: late[]
//        │
//   fetch()       one request for all pieces
//   wait()        for frames that other threads fill, or that are being prefetched
//   read_late()   what has no frame, or lost it
//
// While it waits for a device it calls `meanwhile`, which may start prefetches.
//
// Threads: everything but start() is safe from any.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/cache/kept_frames.h"
#include "iomgr/cache/memory_budget.h"
#include "iomgr/read/extent_batch.h"
#include "iomgr/read/extent_request.h"
#include "iomgr/read/prefetch_tracker.h"
#include "iomgr/read/read_ahead.h"

namespace graphlane {

class ExtentReader {
 public:
  struct Counts {
    uint64_t hit_bytes = 0;         // hits, also on frames in flight
    uint64_t fetched_bytes = 0;     // read into frames
    uint64_t bypassed_bytes = 0;    // read without a frame
    uint64_t reclaimed_frames = 0;  // hits on frames that the kernel had reclaimed
  };

  ExtentReader(KeptFrames& kept, ReadAhead& ahead, PrefetchTracker& prefetches,
               MemoryBudget& budget)
      : kept_(kept), ahead_(ahead), prefetches_(prefetches), budget_(budget) {}

  // `keeps`: whether frames are kept after the read.
  void start(bool keeps) { keeps_ = keeps; }

  // False: without memory, or after a device error.
  bool read(const ExtentRequest& request, Meanwhile& meanwhile);
  // As read(), but only if all of it is in memory.
  bool read_hits(const ExtentRequest& request);
  // Whether all of it is in memory or in flight.
  bool is_begun(const ExtentRequest& request);

  Counts counts() const;

 private:
  Admission admission(const ExtentRequest& request, uint64_t frame_index) const;
  bool copy_kept(const ExtentRequest& request, uint64_t frame_index, const Pin& pin);
  bool take_prefetched(const ExtentRequest& request, uint64_t frame_index, const Pin& pin);
  bool read_frames(const ExtentRequest& request, uint64_t first, ExtentBatch& batch,
                   Meanwhile& meanwhile);
  void reserve(const ExtentRequest& request, uint64_t frame_index, ExtentBatch& batch);
  bool fetch(const ExtentRequest& request, ExtentBatch& batch, Meanwhile& meanwhile);
  void end_fetch(const ExtentRequest& request, ExtentBatch& batch, int error);
  void wait(const ExtentRequest& request, ExtentBatch& batch, Meanwhile& meanwhile);
  bool read_late(const ExtentRequest& request, ExtentBatch& batch);

  KeptFrames& kept_;
  ReadAhead& ahead_;
  PrefetchTracker& prefetches_;
  MemoryBudget& budget_;
  bool keeps_ = true;  // constant after start()

  std::atomic<uint64_t> hit_bytes_{0};
  std::atomic<uint64_t> fetched_bytes_{0};
  std::atomic<uint64_t> bypassed_bytes_{0};
  std::atomic<uint64_t> reclaimed_frames_{0};
  ExtentBatches batches_;
};

}  // namespace graphlane
