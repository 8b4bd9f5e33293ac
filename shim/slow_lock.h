// SlowLock: held while a descriptor is identified, never while data is read.
//
// It knows its owner, for two reasons. A signal handler that interrupts the
// owner gets `false` instead of waiting for itself for ever; and a child that
// was forked while another thread held it sees an owner from another process,
// and takes it over: that thread does not exist here.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "iomgr/base/sys.h"

namespace graphlane {

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
      if (other_process &&
          owner_.compare_exchange_strong(owner, me, std::memory_order_acquire)) {
        return true;
      }
      sched_yield();
    }
  }
  void unlock() { owner_.store(0, std::memory_order_release); }

 private:
  static uint64_t identity() {
    const auto process = static_cast<uint64_t>(::syscall(SYS_getpid));
    const auto thread = static_cast<uint64_t>(::syscall(SYS_gettid));
    return process << 32 | thread;
  }
  std::atomic<uint64_t> owner_{0};
};

// Holds a SlowLock for a scope; false when it could not.
class SlowLockGuard {
 public:
  explicit SlowLockGuard(SlowLock& lock) : lock_(lock), held_(lock.lock()) {}
  ~SlowLockGuard() {
    if (held_) lock_.unlock();
  }
  SlowLockGuard(const SlowLockGuard&) = delete;
  SlowLockGuard& operator=(const SlowLockGuard&) = delete;
  explicit operator bool() const { return held_; }

 private:
  SlowLock& lock_;
  const bool held_;
};

}  // namespace graphlane
