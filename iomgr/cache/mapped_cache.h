// MappedCache: a FrameCache with its own memory, which the kernel supplies page by page as
// frames are filled.
//
// A **reclaimable** cache lets the kernel take the pages of filled frames when memory is short
// (MADV_FREE, Linux 4.12), as it takes the page cache: before the OOM killer runs. A reclaimed
// page reads as zeros until the next fill. So page_note.h notes one nonzero byte of each page,
// and copy() checks it after copying: if the byte is there, the whole page was. (A page of zeros
// loses nothing.)
//
// A **packing** cache stores whole frames as word_packing.h packs them, at the beginning of
// their place, and returns the rest of the place to the kernel. So more frames fit into its
// budget than unpacked: the average packed size of the stored frames decides how many.
//
//   cache.claim(fill);  read into fill.bytes();  cache.leave(fill, n);  fill.publish(n)
//   cache.fill(fill, bytes);                                            fill.publish(n)
//   if (!cache.copy(pin, begin, to)) the copied bytes are void
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <span>

#include "iomgr/base/futex.h"
#include "iomgr/cache/cache.h"
#include "iomgr/cache/page_note.h"
#include "iomgr/cache/word_packing.h"

namespace graphlane {

class MappedCache final : private FrameOwner {
 public:
  MappedCache() = default;
  ~MappedCache();  // no pin may be left
  MappedCache(const MappedCache&) = delete;
  MappedCache& operator=(const MappedCache&) = delete;

  struct Options {
    CacheOptions frames;  // a packing cache needs frames of kPackedBytesMax bytes
    bool reclaimable = false;
    // The expected packed size of a frame; 0: no packing.
    uint64_t packed_frame_bytes = 0;
  };

  // Maps room for so many bytes, in whole frames. Call it once. ENOMEM, or the errors of
  // FrameCache::init(). A forked child finds the cache empty; a core dump omits it.
  Result<void> map(uint64_t bytes, const Options& options);

  explicit operator bool() const { return memory_ != nullptr; }
  FrameCache& operator*() { return cache_; }
  FrameCache* operator->() { return &cache_; }
  const FrameCache* operator->() const { return &cache_; }

  // As FrameCache::resize(), in bytes of memory after packing.
  Result<void> resize(uint64_t budget_bytes);
  // Memory that the frames take.
  uint64_t resident_bytes() const;

  // Call it before a device fills the frame: the kernel then keeps what is read into it.
  void claim(const Fill& fill);
  // Call it after the read, before publish(): packs the frame and makes its pages reclaimable.
  // The first `valid_bytes` are the file's. From now on only copy() can read the frame.
  void leave(const Fill& frame, uint64_t valid_bytes);
  // Stores bytes that are in memory already: page-aligned, at most a frame.
  void fill(const Fill& frame, std::span<const std::byte> bytes);

  // Copies bytes of the frame from `begin` on, within pin.bytes(). False: the kernel has
  // reclaimed some of them; the frame is then invalid.
  bool copy(const Pin& pin, uint64_t begin, std::span<std::byte> to);

 private:
  bool packs() const { return groups_ != nullptr; }
  PackedGroup* groups_of(const FrameHold& hold) const;
  PageNote* notes_of(const FrameHold& hold) const;
  uint64_t store(const Fill& frame, std::span<const std::byte> bytes);
  bool lost(const Pin& pin, uint64_t begin, uint64_t end);
  void count_stored(uint32_t frame, uint64_t stored_bytes);
  void on_reclaimed(uint32_t frame) override;
  uint64_t frame_cost() const;
  Result<void> apply_budget();
  uint64_t frames_in(uint64_t budget_bytes) const;

  FrameCache cache_;
  void* memory_ = nullptr;
  uint64_t memory_bytes_ = 0;
  // Reclaimable: the position of a nonzero byte in each page.
  PageNote* notes_ = nullptr;
  // Packing: the groups of each frame, and the memory that each frame takes (0: not stored).
  PackedGroup* groups_ = nullptr;
  std::atomic<uint32_t>* costs_ = nullptr;
  uint64_t known_cost_ = 0;
  std::atomic<uint64_t> cost_sum_{0};
  std::atomic<uint64_t> stored_count_{0};
  FutexLock budget_lock_;  // held while the budget is applied
  std::atomic<uint64_t> budget_bytes_{0};
  std::atomic<uint64_t> budget_frames_{0};
};

}  // namespace graphlane
