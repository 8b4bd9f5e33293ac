// Interrupt: stops the long work of a tool.
//
// A handler of SIGINT and the like sets the flag. Long work calls check_interrupt() between two
// steps, and treats its error as any other: it cleans up and passes it on. Programs that never
// set the flag (the mount) never see the error.
#pragma once

#include <atomic>

#include "iomgr/base/error.h"

namespace graphlane {

// One flag for the process. Lock-free, so that a signal handler may set it.
inline std::atomic<bool> interrupt_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// EINTR: stop.
inline Outcome<void> check_interrupt() {
  // Relaxed: the flag publishes no other data.
  if (!interrupt_requested.load(std::memory_order_relaxed)) return {};
  return make_error(EINTR, "interrupted");
}

}  // namespace graphlane
