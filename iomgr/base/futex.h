// Waits without the C++ runtime and libc's names, for code that is linked into foreign programs.
// Within one process.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace graphlane {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// Sleeps while `word` is `expected`, at most `timeout_ns`; 0: without limit. May wake without a
// reason. Keeps errno.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected,
                       uint64_t timeout_ns = 0) {
  const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000),
                         .tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000)};
  const int saved_errno = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns == 0 ? nullptr : &timeout,
            nullptr, 0);
  errno = saved_errno;
}

// Keeps errno.
inline void futex_wake(const std::atomic<uint32_t>& word, int count = INT_MAX) {
  const int saved_errno = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
  errno = saved_errno;
}

inline uint64_t monotonic_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// A mutex of four bytes, unlocked when zero.
//
// It spins for as long as such a lock is usually held, then sleeps in the kernel (Drepper,
// "Futexes are tricky", the second mutex). Code that may interrupt the holder, as a signal handler
// does, must use lock_patiently(): waiting for ever would never end.
class FutexLock {
 public:
  // Longer than any running holder holds it.
  static constexpr uint64_t kPatienceNs = 100'000'000;

  void lock() {
    if (!spin()) sleep(0);
  }
  // False when it stayed locked for kPatienceNs.
  [[nodiscard]] bool lock_patiently() { return spin() || sleep(monotonic_ns() + kPatienceNs); }

  void unlock() {
    // Release: the next holder sees the effects of this one.
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) futex_wake(state_, 1);
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kAwaited = 2;  // held, and a thread may sleep
  static constexpr int kSpinCount = 100;

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  bool spin() {
    for (int i = 0; i < kSpinCount; ++i) {
      uint32_t free = kFree;
      // Acquire: sees the effects of the last holder.
      if (state_.compare_exchange_weak(free, kHeld, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;
      }
      relax();
    }
    return false;
  }

  bool sleep(uint64_t deadline_ns) {
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
      const uint64_t now = deadline_ns == 0 ? 0 : monotonic_ns();
      if (deadline_ns != 0 && now >= deadline_ns) return false;
      futex_wait(state_, kAwaited, deadline_ns == 0 ? 0 : deadline_ns - now);
    }
    return true;
  }

  std::atomic<uint32_t> state_{kFree};
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
