// StopMask: blocks SIGINT, SIGTERM and SIGHUP for a scope. They stay pending until sigwait(3) or
// signalfd(2) takes them. Signals that nohup(1) or a shell's background job made us ignore stay
// ignored.
//
// Threads: make it before other threads start, because they inherit the mask.
#pragma once

#include <signal.h>

namespace graphlane {

class StopMask {
 public:
  StopMask() {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action;
      if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
      ::sigaddset(&signals_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~StopMask() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopMask(const StopMask&) = delete;
  StopMask& operator=(const StopMask&) = delete;

  const sigset_t& signals() const { return signals_; }

 private:
  sigset_t signals_;
  sigset_t before_;
};

}  // namespace graphlane
