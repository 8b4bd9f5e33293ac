// Keeps the library's tables consistent across fork().
//
// The kernel copies a forking process's descriptors first, and its memory after that, while other
// threads go on. A file that a thread identifies in between would be in the child's memory, but its
// parts would not be among the child's descriptors. Their numbers might even be other files. So no
// thread identifies a file while another one forks.
//
// Each process records its identity at the start. Otherwise a vfork() child, which shares the
// memory, could record its own instead.

#include <pthread.h>

#include <new>

#include "shim/base/process.h"
#include "shim/base/slow_lock.h"

namespace graphlane::shim {
namespace {

// State of the forking thread, and of its copy in the child.
struct Forking {
  alignas(BlockedSignals) unsigned char signals[sizeof(BlockedSignals)];
  bool locked;
};
thread_local Forking forking;

void begin() {
  new (forking.signals) BlockedSignals();  // constructed first, destroyed last
  forking.locked = slow_lock.lock();
}

void end() {
  if (forking.locked) slow_lock.unlock();
  reinterpret_cast<BlockedSignals*>(forking.signals)->~BlockedSignals();
}

void end_in_child() {
  end();
  process_epoch();
}

__attribute__((constructor)) void guard_forks() {
  process_epoch();
  (void)::pthread_atfork(begin, end, end_in_child);
}

}  // namespace
}  // namespace graphlane::shim
