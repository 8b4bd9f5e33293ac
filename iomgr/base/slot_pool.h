// Slots of a fixed array. Those that belong to one owner at a time have a `std::atomic<bool> taken`. Those that make
// room for each other have a `bool used` and a `uint32_t last_used`, by a clock that may wrap; their owner holds a lock.
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
    // Acquire: what its last owner did is done.
    if (!slot.taken.exchange(true, std::memory_order_acquire)) return &slot;
  }
  return nullptr;
}

template <class Slot>
void free_slot(Slot& slot) {
  slot.taken.store(false, std::memory_order_release);
}

// A slot that is not in use; else the one that was used longest ago.
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
