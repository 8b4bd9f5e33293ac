// HeldSignals: no signal is delivered to this thread in a scope. (kButDeadly: but for those that
// end the process.)
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
  // kButDeadly lets SIGTERM and its kin through where the program has no handler for them. They end
  // it, lock and all, even while it waits for a filesystem that does not answer.
  enum Which { kAll, kButDeadly };

  explicit HeldSignals(Which which = kAll) {
    // SIG_BLOCK keeps the signals held that the program itself holds.
    set(SIG_BLOCK, which == kAll ? ~uint64_t{0} : ~deadly_signals(), &before_);
  }
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
  // SIGHUP, SIGINT, SIGQUIT and SIGTERM, as far as they have their default action.
  static uint64_t deadly_signals() {
    uint64_t found = 0;
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
      struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)();
        uint64_t mask;
      } action = {};  // the kernel's struct, not libc's
      if (::syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof action.mask) == 0 &&
          action.handler == SIG_DFL) {
        found |= uint64_t{1} << (signal - 1);
      }
    }
    return found;
  }

  // The kernel's mask, which unlike libc's can hold libc's own signals
  // (cancellation). It cannot fail.
  static void set(int how, uint64_t mask, uint64_t* before) {
    ::syscall(SYS_rt_sigprocmask, how, &mask, before, sizeof mask);
  }
  uint64_t before_ = 0;
};

}  // namespace graphlane
