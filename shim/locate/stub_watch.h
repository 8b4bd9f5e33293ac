// StubWatch: caches the size in a stub while the stub is unchanged. Its ctime is the generation:
// every change of a file's size writes its stub first.
//
// A stub that was changed a moment ago (is_fresh()) is not cached.
//
// Threads: holds() is safe from any; remember() is called by one at a time.
#pragma once

#include <linux/stat.h>

#include <atomic>
#include <cstdint>

#include "iomgr/base/files/file_times.h"
#include "iomgr/volume/stub/stub_lock.h"

namespace graphlane::shim {

// A closed file's size, or an open file's bound.
struct StubSize {
  uint64_t bytes = 0;
  FileState state = FileState::kClosed;
  int64_t ctime_ns = 0;  // the inode's at that time; 0: unknown
};

class StubWatch {
 public:
  // Whether the stub is unchanged since it was read; *said is its content.
  bool holds(const statx_timestamp& ctime, StubSize* said) const {
    // Acquire, and a second load: `said` belongs to that stamp (a sequence lock).
    const int64_t stamp = stamp_.load(std::memory_order_acquire);
    if (stamp == kNever || stamp != nanoseconds(ctime)) return false;
    const uint64_t bits = said_.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (stamp_.load(std::memory_order_relaxed) != stamp) return false;
    *said = {.bytes = bits & ~kOpenBit,
             .state = (bits & kOpenBit) != 0 ? FileState::kOpen : FileState::kClosed};
    return true;
  }

  // `ctime` is from before the stub was read.
  void remember(const statx_timestamp& ctime, const StubSize& said) {
    const int64_t stamp = nanoseconds(ctime);
    stamp_.store(kNever, std::memory_order_relaxed);
    // Release: a thread that sees the new size sees that the old stamp is gone.
    std::atomic_thread_fence(std::memory_order_release);
    said_.store(said.bytes | (said.state == FileState::kOpen ? kOpenBit : 0),
                std::memory_order_relaxed);
    stamp_.store(is_fresh(stamp) ? kNever : stamp, std::memory_order_release);
  }

 private:
  static constexpr int64_t kNever = 0;
  static constexpr uint64_t kOpenBit = uint64_t{1} << 63;

  std::atomic<int64_t> stamp_{kNever};
  std::atomic<uint64_t> said_{0};
};

}  // namespace graphlane::shim
