// SlowLock: held while a descriptor is identified, never while data is read.
//
// It knows its owner's process: a child that was forked while another thread held
// it takes it over, for that thread does not exist there. Signals are held with
// it, so that no handler waits for the thread that it interrupted.
#pragma once

#include <sched.h>

#include <atomic>

#include "shim/held_signals.h"

namespace graphlane {

class SlowLock {
 public:
  void lock() {
    const auto me = static_cast<pid_t>(::syscall(SYS_getpid));
    pid_t owner = 0;
    while (!owner_.compare_exchange_weak(owner, me, std::memory_order_acquire)) {
      if (owner != me) continue;  // 0, or the parent's: tried again as it is now
      owner = 0;
      sched_yield();
    }
  }
  void unlock() { owner_.store(0, std::memory_order_release); }

 private:
  std::atomic<pid_t> owner_{0};  // the process whose thread holds it
};

// Holds a SlowLock, and signals, for a scope.
class SlowLockGuard {
 public:
  explicit SlowLockGuard(SlowLock& lock) : lock_(lock) { lock_.lock(); }
  ~SlowLockGuard() { lock_.unlock(); }
  SlowLockGuard(const SlowLockGuard&) = delete;
  SlowLockGuard& operator=(const SlowLockGuard&) = delete;

 private:
  const HeldSignals signals_;  // first held, last let go
  SlowLock& lock_;
};

}  // namespace graphlane
