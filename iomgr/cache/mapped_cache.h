// MappedCache: a FrameCache with memory of its own, which the kernel gives it page by
// page as frames are filled.
//
// One that **yields** leaves every frame that has been filled to the kernel, should it need
// memory (MADV_FREE, Linux 4.12): its pages then go as those of the page cache do, before
// anybody is killed. A page that has gone reads as zeros, and nothing but the next fill
// changes that. So of each page one byte that is not zero is noted, and who has copied looks
// for it: if it is there, all of the page was. (A page of zeros can lose nothing.)
//
// One that **packs** keeps whole frames as word_packing.h makes them, at the beginning of their
// place, and gives the rest of it back. So it has more frames than its budget has room for
// unpacked: as many as fit by what the average one of those that it was given has become.
//
//   cache.claim(fill);  read into fill.bytes();  cache.leave(fill, n);  fill.publish(n)
//   cache.fill(fill, bytes);                                            fill.publish(n)
//   if (!cache.copy(pin, begin, to)) what was copied is void
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
  ~MappedCache();  // nobody pins a frame
  MappedCache(const MappedCache&) = delete;
  MappedCache& operator=(const MappedCache&) = delete;

  struct Options {
    CacheOptions frames;  // of those that pack, of kPackedBytesMax bytes
    bool yields = false;
    // What a frame becomes, as far as is known; 0: it packs none.
    uint64_t packed_frame_bytes = 0;
  };

  // Room for so many bytes, in whole frames; once. ENOMEM, or as FrameCache::init().
  // A child by fork finds it empty; a core dump is without it.
  Result<void> map(uint64_t bytes, const Options& options);

  explicit operator bool() const { return memory_ != nullptr; }
  FrameCache& operator*() { return cache_; }
  FrameCache* operator->() { return &cache_; }
  const FrameCache* operator->() const { return &cache_; }

  // So many bytes of memory; as FrameCache::resize().
  Result<void> resize(uint64_t budget_bytes);
  // What its frames take.
  uint64_t resident_bytes() const;

  // Before a device fills it: what is read into the frame stays. (If this yields.)
  void claim(const Fill& fill);
  // After it, before others see the frame: packs it, and the kernel may take its pages. The first
  // `valid_bytes` are the file's. What the frame's bytes are from now on, only copy() knows.
  void leave(const Fill& frame, uint64_t valid_bytes);
  // Both, of bytes that are in memory already: at most a frame's, page-aligned, the file's.
  void fill(const Fill& frame, std::span<const std::byte> bytes);

  // Bytes of the frame from `begin` on; within pin.bytes(). False: the kernel had taken some of it. Then
  // nobody finds it again.
  bool copy(const Pin& pin, uint64_t begin, std::span<std::byte> to);

 private:
  bool packs() const { return groups_ != nullptr; }
  PackedGroup* groups_of(const FrameHold& hold) const;
  PageNote* notes_of(const FrameHold& hold) const;
  uint64_t store(const Fill& frame, std::span<const std::byte> bytes);
  bool lost(const Pin& pin, uint64_t begin, uint64_t end);
  void count_stored(uint32_t frame, uint64_t stored_bytes);
  void given_back(uint32_t frame) override;
  uint64_t frame_cost() const;
  Result<void> fit();
  uint64_t frames_in(uint64_t budget_bytes) const;

  FrameCache cache_;
  void* memory_ = nullptr;
  uint64_t memory_bytes_ = 0;
  // Of one that yields: of each page where a byte is that is not zero.
  PageNote* notes_ = nullptr;
  // Of one that packs: of each frame; and what each takes, 0: nothing was stored.
  PackedGroup* groups_ = nullptr;
  std::atomic<uint32_t>* costs_ = nullptr;
  uint64_t known_cost_ = 0;
  std::atomic<uint64_t> cost_sum_{0};
  std::atomic<uint64_t> stored_count_{0};
  FutexLock fitting_;  // held while the budget is applied
  std::atomic<uint64_t> budget_bytes_{0};
  std::atomic<uint64_t> budget_frames_{0};
};

}  // namespace graphlane
