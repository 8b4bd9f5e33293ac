// SlowLock: held while a descriptor is identified, or a stub is renamed, but never while data is
// read.
//
// It knows its owner, for two reasons. A forked child takes it over from a thread of its parent,
// which does not exist in the child. (Beside a vfork() child the thread exists.) A thread that
// already holds it gets `false` instead of a deadlock: a sanitizer that intercepts memcmp() maps
// files itself. (No signal handler does so, because signals are blocked meanwhile, except those
// that end the process.)
#pragma once

#include <sched.h>

#include <atomic>

#include "iomgr/base/process/blocked_signals.h"
#include "shim/base/process.h"

namespace graphlane::shim {

class SlowLock {
 public:
  // False: this thread holds it already.
  bool lock() {
    const uint64_t me = identity();
    while (true) {
      uint64_t owner = 0;
      if (owner_.compare_exchange_strong(owner, me, std::memory_order_acquire)) return true;
      if (owner == me) return false;
      const bool other_process = owner >> 32 != me >> 32;
      if (other_process && owner_.compare_exchange_strong(owner, me, std::memory_order_acquire)) {
        return true;
      }
      sched_yield();
    }
  }
  void unlock() { owner_.store(0, std::memory_order_release); }

 private:
  static uint64_t identity() {
    uint64_t process = process_epoch();
    if (process == 0) process = static_cast<uint64_t>(::syscall(SYS_getpid));
    const auto thread = static_cast<uint64_t>(::syscall(SYS_gettid));
    return process << 32 | thread;
  }
  std::atomic<uint64_t> owner_{0};
};

// The library's only one.
extern SlowLock slow_lock;

// Holds the SlowLock, and blocks signals, for a scope; false: it could not take the lock.
class SlowLockGuard {
 public:
  explicit SlowLockGuard(SlowLock& lock) : lock_(lock), held_(lock.lock()) {}
  ~SlowLockGuard() {
    if (held_) lock_.unlock();
  }
  explicit operator bool() const { return held_; }
  SlowLockGuard(const SlowLockGuard&) = delete;
  SlowLockGuard& operator=(const SlowLockGuard&) = delete;

 private:
  const BlockedSignals signals_{BlockedSignals::kButDeadly};  // constructed first, destroyed last
  SlowLock& lock_;
  const bool held_;
};

}  // namespace graphlane::shim
