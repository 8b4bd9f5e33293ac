// HeldSignals: waits for a child process and passes signals on to it.
//
// Threads: affects the whole process, which should have no other threads.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#include <chrono>

namespace graphlane::fuse {

// Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD for its lifetime.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
      ::sigaddset(&held_, signal);
    }
    ::sigprocmask(SIG_BLOCK, &held_, &before_);
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;  // an inherited SIG_IGN would reap the command
    ::sigaction(SIGCHLD, &action, &child_before_);
  }
  ~HeldSignals() {
    ::sigaction(SIGCHLD, &child_before_, nullptr);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  // The signal mask that the child restores before it executes the command.
  const sigset_t& before() const { return before_; }

  // Waits for `child` and passes the other signals on. Returns the status of wait().
  int wait_for(pid_t child) const {
    int status;
    while (::waitpid(child, &status, WNOHANG) != child) {
      siginfo_t info;
      if (::sigwaitinfo(&held_, &info) < 0 || info.si_signo == SIGCHLD) continue;
      // The command gets the terminal's signals (SI_KERNEL) directly.
      if (info.si_code <= 0) ::kill(child, info.si_signo);
    }
    return status;
  }

  // Waits at most until `deadline`.
  void wait_for(pid_t child, std::chrono::steady_clock::time_point deadline) const {
    while (::waitpid(child, nullptr, WNOHANG) == 0) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) return;
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      const timespec limit{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
      ::sigtimedwait(&held_, nullptr, &limit);
    }
  }

 private:
  sigset_t held_;
  sigset_t before_;
  struct sigaction child_before_;
};

}  // namespace graphlane::fuse
