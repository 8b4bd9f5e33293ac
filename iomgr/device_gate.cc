#include "iomgr/device_gate.h"

#include <algorithm>
#include <tuple>

#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

// Bytes of a part behind the head. A thread that far behind others is of their sweep.
constexpr uint64_t kBehindMax = 32 << 20;

}  // namespace

void GateCaller::tell() {
  told_.fetch_add(1, std::memory_order_release);
  futex_wake(told_);
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
  waiter->turn = overtaking_.wait(waiter->length_bytes);
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
  // Within the lock, which the waiter needs to leave: until then, its caller lives.
  waiter->caller->tell();
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
  overtaking_.take((*place)->length_bytes);
  *place = (*place)->next;
}

void DeviceGate::admit(Waiter* waiter) {
  ++inside_;
  head_fd_ = waiter->fd;
  head_offset_ = waiter->part_offset;
  waiter->entered.store(true, std::memory_order_release);
}

// The lowest from a little behind the head on. Few wait: one LaneIo a thread and device, mostly.
DeviceGate::Waiter** DeviceGate::best() {
  if (overtaking_.is_unfair(waiting_->turn)) return &waiting_;
  const auto key = [](const Waiter* w) { return std::tie(w->fd, w->part_offset); };
  const uint64_t behind = head_offset_ - std::min(head_offset_, kBehindMax);
  const auto begin = std::tie(head_fd_, behind);
  Waiter** lowest = &waiting_;
  Waiter** next = nullptr;
  for (Waiter** w = &waiting_; *w != nullptr; w = &(*w)->next) {
    if (key(*w) < key(*lowest)) lowest = w;
    if (key(*w) >= begin && (next == nullptr || key(*w) < key(*next))) next = w;
  }
  return next != nullptr ? next : lowest;
}

}  // namespace graphlane
