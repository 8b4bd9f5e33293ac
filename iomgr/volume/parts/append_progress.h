// AppendProgress: how far a process has come that appends to a striped file without asking before
// each write.
//
//   client   grant ──take()──► writes to the parts ──give_back(bytes)──► grant
//   server        └─ end() at any time;  recall(), then waits until nothing is taken;  revoke()
//
// It lies in memory that both share. The client is not trusted, so the server checks each end that
// it reads. give_back() counts bytes that are in the parts, so neither process loses them by dying.
// Only one thread of the client may use it at a time.
//
// Threads, signal handlers: everything is one atomic operation. No allocation, no exceptions: the
// preload library uses this too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace graphlane {

class AppendProgress {
 public:
  // Larger offsets have no room beside the flags.
  static constexpr uint64_t kEndMax = (uint64_t{1} << 61) - 1;

  // The server. All that was written before is behind the release.
  void grant(uint64_t end) { word_.store(kGranted | end, std::memory_order_release); }
  // Returns the last end. A give_back() that comes later counts nothing, and says so.
  uint64_t revoke() { return word_.exchange(0, std::memory_order_acq_rel) & kEndMax; }
  // Nothing is taken from now on.
  void recall() { word_.fetch_or(kRecalled, std::memory_order_acq_rel); }
  // The offset behind the last byte that was counted.
  uint64_t end() const { return word_.load(std::memory_order_acquire) & kEndMax; }
  bool is_taken() const { return (word_.load(std::memory_order_acquire) & kTaken) != 0; }

  // The client. Whether it may write at `end`. No other process writes there until give_back().
  bool take(uint64_t end) {
    uint64_t expected = kGranted | end;
    return end <= kEndMax &&
           word_.compare_exchange_strong(expected, expected | kTaken, std::memory_order_acquire);
  }
  // So many bytes are in the parts now. False: the server did not wait, and they do not count.
  bool give_back(uint64_t bytes) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    do {
      if ((word & kTaken) == 0) return false;
    } while (!word_.compare_exchange_weak(word, word + bytes - kTaken, std::memory_order_release,
                                          std::memory_order_relaxed));
    return true;
  }
  bool is_granted() const {
    return (word_.load(std::memory_order_acquire) & (kGranted | kRecalled)) == kGranted;
  }

 private:
  static constexpr uint64_t kGranted = uint64_t{1} << 63, kTaken = uint64_t{1} << 62,
                            kRecalled = uint64_t{1} << 61;

  std::atomic<uint64_t> word_{0};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

inline constexpr size_t kAppendPageBytes = 4096;

}  // namespace graphlane
