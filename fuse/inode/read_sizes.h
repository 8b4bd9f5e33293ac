// ReadSizes: the sizes of a handle's reads. They predict those of the next handle: as the last one
// of the same file, else as the last one of any file.
//
// Large reads need no pages in the kernel (plan.h, `in_turn`), small ones do. Past the page cache,
// requests have the program's sizes. Through it only a handle's first requests show them: the first
// read-ahead window is as large as the first read, or four times that. Later ones grow in any case.
//
// Threads: safe from any. Relaxed throughout: estimates.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/read/plan.h"

namespace graphlane::fuse {

class ReadSizes {
 public:
  // Adds a request through the page cache. True: it shows large reads. `request_max`: the kernel's
  // longest request.
  bool shows_large(uint64_t bytes, uint64_t request_max) {
    if (request_count_.load(kRelaxed) >= kFirstRequests) return false;
    return request_count_.fetch_add(1, kRelaxed) < kFirstRequests && bytes >= request_max;
  }

  // Adds a request past the page cache, of the program's size.
  void add(uint64_t bytes) {
    all_bytes_.fetch_add(bytes, kRelaxed);
    if (bytes < kSmallReadBytes) small_bytes_.fetch_add(bytes, kRelaxed);
  }
  bool were_small() const { return small_bytes_.load(kRelaxed) > all_bytes_.load(kRelaxed) / 2; }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  static constexpr uint32_t kFirstRequests = 2;

  std::atomic<uint32_t> request_count_{0};
  std::atomic<uint64_t> all_bytes_{0};
  std::atomic<uint64_t> small_bytes_{0};
};

// The last sizes of one file, or of all files: large until small reads were seen.
class LastReadSizes {
 public:
  void set(bool large) { last_.store(large ? Last::kLarge : Last::kSmall, kRelaxed); }
  bool large(const LastReadSizes& else_as) const {
    const Last last = last_.load(kRelaxed);
    return (last != Last::kUnknown ? last : else_as.last_.load(kRelaxed)) != Last::kSmall;
  }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  enum class Last : uint8_t { kUnknown, kSmall, kLarge };
  std::atomic<Last> last_{Last::kUnknown};
};

}  // namespace graphlane::fuse
