// Slots of a fixed array. Slots with one owner at a time have a `std::atomic<bool> taken`. Slots
// that replace each other have a `bool used` and a `uint32_t last_used`, by a clock that may wrap;
// the array's owner holds a lock.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace graphlane {

// Null: all are taken.
template <class Slot, size_t count>
Slot* take_free_slot(Slot (&slots)[count]) {
  for (Slot& slot : slots) {
    // Acquire: the effects of its last owner are visible.
    if (!slot.taken.exchange(true, std::memory_order_acquire)) return &slot;
  }
  return nullptr;
}

template <class Slot>
void free_slot(Slot& slot) {
  slot.taken.store(false, std::memory_order_release);
}

// An unused slot, or else the least recently used one.
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
