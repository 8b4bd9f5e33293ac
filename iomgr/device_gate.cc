#include "iomgr/device_gate.h"

#include <ctime>
#include <tuple>

#include "iomgr/base/sys.h"
#include "iomgr/lane_queue.h"

namespace graphlane {

namespace {

constexpr int64_t kPatienceMs = std::chrono::milliseconds(LaneQueue::kPatience).count();

// Not std::chrono's, which is in the C++ runtime.
int64_t now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

// The waiter may be gone as soon as it can see that it has entered.
void GateCaller::tell() {
  told_.fetch_add(1, std::memory_order_release);
  futex_wake(told_);
  const uint64_t one = 1;
  if (event_fd_ >= 0) (void)!sys::write(event_fd_, &one, sizeof one);
}

bool DeviceGate::enter(Waiter* waiter) {
  waiter->entered.store(false, std::memory_order_relaxed);
  const FutexLockGuard lock(lock_);
  if (inside_ < width_.load(std::memory_order_relaxed) && waiting_ == nullptr) {
    admit(waiter);
    return true;
  }
  waiter->arrived_ms = now_ms();
  waiter->next = nullptr;
  Waiter** last = &waiting_;
  while (*last != nullptr) last = &(*last)->next;
  *last = waiter;
  return false;
}

void DeviceGate::leave() {
  GateCaller* next = nullptr;
  {
    const FutexLockGuard lock(lock_);
    --inside_;
    if (waiting_ == nullptr) return;
    Waiter** const place = best(now_ms());
    Waiter* const waiter = *place;
    *place = waiter->next;
    next = waiter->caller;
    admit(waiter);
    // Within the lock: give_up() of the last one ends the caller's life.
    next->tell();
  }
}

void DeviceGate::give_up(Waiter* waiter) {
  {
    const FutexLockGuard lock(lock_);
    if (!waiter->entered.load(std::memory_order_relaxed)) {
      Waiter** place = &waiting_;
      while (*place != waiter) place = &(*place)->next;
      *place = waiter->next;
      return;
    }
  }
  leave();
}

void DeviceGate::admit(Waiter* waiter) {
  ++inside_;
  head_fd_ = waiter->fd;
  head_offset_ = waiter->part_offset;
  waiter->entered.store(true, std::memory_order_release);
}

// Few wait: one LaneIo a thread and device, mostly.
DeviceGate::Waiter** DeviceGate::best(int64_t now_ms) {
  if (now_ms - waiting_->arrived_ms > kPatienceMs) return &waiting_;
  const auto key = [](const Waiter* w) { return std::tie(w->fd, w->part_offset); };
  const auto head = std::tie(head_fd_, head_offset_);
  Waiter** lowest = &waiting_;
  Waiter** next = nullptr;  // the lowest from the head on
  for (Waiter** w = &waiting_; *w != nullptr; w = &(*w)->next) {
    if (key(*w) < key(*lowest)) lowest = w;
    if (key(*w) >= head && (next == nullptr || key(*w) < key(*next))) next = w;
  }
  return next != nullptr ? next : lowest;
}

}  // namespace graphlane
