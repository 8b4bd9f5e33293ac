// StopMask: SIGINT, SIGTERM and SIGHUP, blocked for a scope: they wait until somebody takes
// them, by sigwait(3) or signalfd(2). Those that nohup(1) or a shell's background job has us
// ignore stay ignored.
//
// Threads: made before others are started, which inherit the mask.
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
