// HeldSignals: no signal is delivered to this thread in a scope.
//
// A handler may leave by siglongjmp(). It must not do so while this thread holds
// a lock, or while the kernel still fills the caller's buffer: natively a signal
// waits for a read of a file to end, too.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "iomgr/base/sys.h"

namespace graphlane {

class HeldSignals {
 public:
  HeldSignals() { set(SIG_SETMASK, ~uint64_t{0}, &before_); }
  ~HeldSignals() { set(SIG_SETMASK, before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // For so long signals come, and their handlers run. A handler that leaves by siglongjmp() leaves
  // this scope without its end.
  void pause(int64_t nanoseconds) const {
    timespec duration{.tv_sec = 0, .tv_nsec = nanoseconds};
    ::syscall(SYS_ppoll, nullptr, 0, &duration, &before_, sizeof before_);
  }

 private:
  // The kernel's mask, which unlike libc's can hold libc's own signals
  // (cancellation). It cannot fail.
  static void set(int how, uint64_t mask, uint64_t* before) {
    ::syscall(SYS_rt_sigprocmask, how, &mask, before, sizeof mask);
  }
  uint64_t before_ = 0;
};

}  // namespace graphlane
