// BlockedSignals: blocks all signals in this thread for a scope. (kButDeadly: except those that end
// the process.)
//
// A handler may leave by siglongjmp(). It must not do so while this thread holds a lock, or while
// the kernel fills the caller's buffer. (Without the library, a signal waits for a file's read,
// too.)
#pragma once

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "iomgr/base/sys.h"

namespace graphlane {

class BlockedSignals {
 public:
  // kButDeadly admits SIGTERM and its kin where the program has no handler for them. They end the
  // process, with its locks, even while it waits for a filesystem that does not answer.
  enum Which { kAll, kButDeadly };

  explicit BlockedSignals(Which which = kAll) {
    // SIG_BLOCK also keeps the signals blocked that the program itself blocks.
    set(SIG_BLOCK, which == kAll ? ~uint64_t{0} : ~deadly_signals(), &before_);
  }
  ~BlockedSignals() { set(SIG_SETMASK, before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  // Admits signals for so long, and runs their handlers. A handler that leaves by siglongjmp()
  // skips this scope's destructor.
  void pause(int64_t nanoseconds) const {
    timespec duration{.tv_sec = 0, .tv_nsec = nanoseconds};
    ::syscall(SYS_ppoll, nullptr, 0, &duration, &before_, sizeof before_);
  }

 private:
  // Those of SIGHUP, SIGINT, SIGQUIT and SIGTERM with their default action.
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

  // Sets the kernel's mask, which unlike libc's can include libc's own signals (cancellation). It
  // cannot fail.
  static void set(int how, uint64_t mask, uint64_t* before) {
    ::syscall(SYS_rt_sigprocmask, how, &mask, before, sizeof mask);
  }
  uint64_t before_ = 0;
};

}  // namespace graphlane
