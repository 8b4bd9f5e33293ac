// StopSignals: SIGINT, SIGTERM and SIGHUP end a session, at whatever time they arrive.
//
//   StopSignals stop;             they are blocked from here on
//   session->mount(mountpoint);
//   stop.guard(session);          they end the session's loop
//   fuse_session_loop_mt(…);
//   stop.release();
//
// libfuse's own handlers can be installed only after the mount. A signal before that would leave a
// dead mount, and one between the loop's check of its flag and its sleep would be lost.
//
// Threads: the loop's thread makes, guards and releases it, before it starts other threads, which
// inherit the blocked signals.
#pragma once

#include <pthread.h>

#include <thread>

#include "fuse/ops/fuse_api.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/process/signal_mask.h"

namespace graphlane::fuse {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void guard(fuse_session* session);
  void release();

 private:
  void watch(fuse_session* session, pthread_t server) const;

  const StopMask mask_;
  Fd released_;  // an eventfd, readable after the loop has ended
  std::thread watcher_;
};

}  // namespace graphlane::fuse
