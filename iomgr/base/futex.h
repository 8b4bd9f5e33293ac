// Waiting without the C++ runtime and without libc's names: for code that is linked
// into strangers' programs. Within one process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace graphlane {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// Until `word` is no longer `expected`, or for no reason at all.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected) {
  (void)::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

inline void futex_wake(const std::atomic<uint32_t>& word, int count = INT_MAX) {
  (void)::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// A mutex of three states (U. Drepper, "Futexes are tricky", mutex3): no system call
// where nobody waits.
class FutexLock {
 public:
  void lock() {
    uint32_t state = kFree;
    if (word_.compare_exchange_strong(state, kHeld, std::memory_order_acquire)) return;
    if (state != kWaitedFor) state = word_.exchange(kWaitedFor, std::memory_order_acquire);
    while (state != kFree) {
      futex_wait(word_, kWaitedFor);
      state = word_.exchange(kWaitedFor, std::memory_order_acquire);
    }
  }
  void unlock() {
    if (word_.exchange(kFree, std::memory_order_release) == kWaitedFor) futex_wake(word_, 1);
  }

 private:
  enum : uint32_t { kFree, kHeld, kWaitedFor };
  std::atomic<uint32_t> word_{kFree};
};

class FutexLockGuard {
 public:
  explicit FutexLockGuard(FutexLock& lock) : lock_(lock) { lock_.lock(); }
  ~FutexLockGuard() { lock_.unlock(); }
  FutexLockGuard(const FutexLockGuard&) = delete;
  FutexLockGuard& operator=(const FutexLockGuard&) = delete;

 private:
  FutexLock& lock_;
};

}  // namespace graphlane
