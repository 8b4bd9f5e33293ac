// Slots of a fixed array, each of one owner at a time: a slot has `std::atomic<bool> taken`.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstddef>

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

}  // namespace graphlane
