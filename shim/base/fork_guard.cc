// What the library knows, across fork().
//
// The kernel copies a forking process's descriptors first, and its memory after that, while
// the other threads go on. A file that one of them identified in between would be in the
// child's memory without its parts among the child's descriptors, whose numbers might even
// be other files'. So nobody identifies one while a thread forks.
//
// And each process says which it is before a child of its by vfork() could say so in its place.

#include <pthread.h>

#include <new>

#include "shim/base/process.h"
#include "shim/base/slow_lock.h"

namespace graphlane {
namespace {

// Of the thread that forks, and of its copy in the child.
struct Forking {
  alignas(HeldSignals) unsigned char signals[sizeof(HeldSignals)];
  bool locked;
};
thread_local Forking forking;

void begin() {
  new (forking.signals) HeldSignals();  // first held, last let go
  forking.locked = slow_lock.lock();
}

void end() {
  if (forking.locked) slow_lock.unlock();
  reinterpret_cast<HeldSignals*>(forking.signals)->~HeldSignals();
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
}  // namespace graphlane
