#include "fuse/mount/stop_signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace graphlane::fuse {
namespace {

constexpr int kForever = -1;
constexpr int kNudgeMs = 1;

// Interrupts the loop's sleep, after which it sees that the session has ended.
constexpr int kNudge = SIGUSR2;

}  // namespace

StopSignals::StopSignals() : released_(::eventfd(0, EFD_CLOEXEC)) {}

StopSignals::~StopSignals() { release(); }

void StopSignals::guard(fuse_session* session) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};  // no SA_RESTART: the sleep must end
  ::sigaction(kNudge, &action, nullptr);
  watcher_ = std::thread(&StopSignals::watch, this, session, ::pthread_self());
}

void StopSignals::release() {
  if (!watcher_.joinable()) return;
  ::eventfd_write(released_.get(), 1);
  watcher_.join();
}

void StopSignals::watch(fuse_session* session, pthread_t server) const {
  const Fd arrived(::signalfd(-1, &mask_.signals(), SFD_CLOEXEC));
  pollfd either[] = {{arrived.get(), POLLIN, 0}, {released_.get(), POLLIN, 0}};
  while (::poll(either, 2, kForever) <= 0) continue;
  if (either[1].revents != 0) return;
  signalfd_siginfo taken;
  (void)!::read(arrived.get(), &taken, sizeof taken);
  ::fuse_session_exit(session);
  // Repeated, because the loop may be just about to sleep.
  do ::pthread_kill(server, kNudge);
  while (::poll(&either[1], 1, kNudgeMs) <= 0);
}

}  // namespace graphlane::fuse
