// Slots of a fixed array that make room for each other: a slot has `bool used` and
// `uint32_t last_used`, by a clock that may wrap.
//
// Threads: none; the owner has a lock.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace graphlane {

// One that is not in use; else the one that was not used for longest.
template <class Slot, size_t count>
Slot& unused_or_oldest_slot(Slot (&slots)[count], uint32_t clock) {
  Slot* oldest = &slots[0];
  for (Slot& slot : slots) {
    if (!slot.used) return slot;
    if (clock - slot.last_used > clock - oldest->last_used) oldest = &slot;
  }
  return *oldest;
}

}  // namespace graphlane
