#include "iomgr/io/device_gate.h"

#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

DevicePlace place_of(const DeviceGate::Waiter* waiter) {
  return {.fd = waiter->fd, .offset = waiter->part_offset};
}

}  // namespace

void GateCaller::notify() {
  notifications_.fetch_add(1, std::memory_order_release);
  futex_wake(notifications_);
  const uint64_t one = 1;
  if (event_fd_ >= 0) (void)!sys::write(event_fd_, &one, sizeof one);
}

bool DeviceGate::is_free() {
  const FutexLockGuard lock(lock_);
  return inside_ == 0 && waiting_ == nullptr;
}

bool DeviceGate::enter(Waiter* waiter) {
  waiter->entered.store(false, std::memory_order_relaxed);
  const FutexLockGuard lock(lock_);
  if (inside_ < width_.load(std::memory_order_relaxed) && waiting_ == nullptr) {
    admit(waiter);
    return true;
  }
  waiter->turn = elevator_.wait(waiter->length_bytes);
  waiter->next = nullptr;
  Waiter** last = &waiting_;
  while (*last != nullptr) last = &(*last)->next;
  *last = waiter;
  return false;
}

void DeviceGate::leave() {
  const FutexLockGuard lock(lock_);
  --inside_;
  if (waiting_ == nullptr) return;
  Waiter** const place = best();
  Waiter* const waiter = *place;
  forget(place);
  admit(waiter);
  // Under the lock, which the waiter needs for leave(): so its caller still lives.
  waiter->caller->notify();
}

void DeviceGate::give_up(Waiter* waiter) {
  {
    const FutexLockGuard lock(lock_);
    if (!waiter->entered.load(std::memory_order_relaxed)) {
      Waiter** place = &waiting_;
      while (*place != waiter) place = &(*place)->next;
      forget(place);
      return;
    }
  }
  leave();
}

void DeviceGate::forget(Waiter** place) {
  elevator_.take((*place)->length_bytes);
  *place = (*place)->next;
}

void DeviceGate::admit(Waiter* waiter) {
  ++inside_;
  elevator_.move_to(place_of(waiter), waiter->length_bytes);
  waiter->entered.store(true, std::memory_order_release);
}

// A linear search, because few wait: mostly one LaneIo per thread and device.
DeviceGate::Waiter** DeviceGate::best() {
  if (elevator_.is_unfair(waiting_->turn)) return &waiting_;
  const DevicePlace begin = elevator_.next_from();
  Waiter** lowest = &waiting_;
  Waiter** next = nullptr;
  for (Waiter** w = &waiting_; *w != nullptr; w = &(*w)->next) {
    const DevicePlace place = place_of(*w);
    if (place < place_of(*lowest)) lowest = w;
    if (place >= begin && (next == nullptr || place < place_of(*next))) next = w;
  }
  return next != nullptr ? next : lowest;
}

}  // namespace graphlane
