// Interrupt: how a tool stops the long work that it has asked for.
//
// A handler of SIGINT and the like sets the flag; whatever may take long asks
// check_interrupt() between two pieces of work, and treats its error as it
// treats any other: cleans up and hands it on. Programs that never set the flag
// (the mount) never see the error.
#pragma once

#include <atomic>

#include "iomgr/base/error.h"

namespace graphlane {

// Of the whole process. Lock-free, so that a signal handler may set it.
inline std::atomic<bool> interrupt_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// EINTR: stop.
inline Outcome<void> check_interrupt() {
  // Relaxed: the flag says nothing but itself.
  if (!interrupt_requested.load(std::memory_order_relaxed)) return {};
  return make_error(EINTR, "interrupted");
}

}  // namespace graphlane
