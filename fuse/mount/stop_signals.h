// StopSignals: SIGINT, SIGTERM and SIGHUP end a session, whenever they come.
//
//   StopSignals stop;             from here on they wait
//   session->mount(mountpoint);
//   stop.guard(session);          … and end the session's loop
//   fuse_session_loop_mt(…);
//   stop.release();
//
// libfuse's own handlers can be installed only once the session is mounted: a
// signal before that would leave a dead mount, and one between the loop's look
// at its flag and its sleep would be forgotten.
//
// Threads: made, guarded and released by the thread that runs the loop, before
// any other thread is started (they inherit the blocked signals).
#pragma once

#include <pthread.h>

#include <thread>

#include "fuse/ops/fuse_api.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/process/signal_mask.h"

namespace graphlane {

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
  Fd released_;  // eventfd; readable once the loop has ended
  std::thread watcher_;
};

}  // namespace graphlane
