// DeviceGate: how many I/Os of this process a device has at a time, and which I/O is next.
//
// It does for a preloaded program what a Lane does with its own threads: readers wait at the gates
// of their devices, in the order of an Elevator, and do their I/O themselves. Without it, the
// streams of several threads would make a disk's head jump between them (CSMqGraph §2.3).
//
//   waiter ──enter()──► true: go on
//
//                └────► false: later its caller is told, and waiter.entered is set
//
//   I/O done ──leave()
//
// Threads: everything is safe from any thread. Not across fork(): a child starts with new gates
// without (inline_engine.h).
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/futex.h"
#include "iomgr/io/elevator.h"

namespace graphlane {

// A thread that waits, at any number of gates.
class GateCaller {
 public:
  // `event_fd` is written too when the caller is told; -1: none.
  explicit GateCaller(int event_fd = -1) : event_fd_(event_fd) {}

  // How often it was told; pass an older count to wait_after().
  uint32_t notifications() const { return notifications_.load(std::memory_order_acquire); }
  void wait_after(uint32_t count) const { futex_wait(notifications_, count); }
  void notify();

 private:
  const int event_fd_;
  std::atomic<uint32_t> notifications_{0};
};

class DeviceGate {
 public:
  struct Waiter {
    // The place of its I/O on the device.
    int fd = -1;
    uint64_t part_offset = 0;
    uint64_t length_bytes = 0;
    GateCaller* caller = nullptr;
    std::atomic<bool> entered{false};

   private:
    friend class DeviceGate;
    Waiter* next = nullptr;
    uint64_t turn = 0;  // from the Elevator
  };

  // At most `width` I/Os at once; 0: no limit, and no thread needs to ask.
  void set_width(uint32_t width) { width_.store(width, std::memory_order_relaxed); }
  uint32_t width() const { return width_.load(std::memory_order_relaxed); }
  bool is_narrow() const { return width() > 0; }
  // Whether the device is a disk, which is best read by one long stream.
  void set_seeks(bool seeks) { seeks_.store(seeks, std::memory_order_relaxed); }
  bool seeks() const { return seeks_.load(std::memory_order_relaxed); }

  // Whether no thread is inside or waits.
  bool is_free();

  // The waiter must live until leave() or give_up().
  bool enter(Waiter* waiter);
  void leave();
  // Ends a waiter that has entered or still waits, without I/O.
  void give_up(Waiter* waiter);

 private:
  // The distance between eight threads that each read 24 MiB from two devices.
  static constexpr uint64_t kBehindMax = 96 << 20;

  Waiter** best();
  void forget(Waiter** place);
  void admit(Waiter* waiter);

  std::atomic<uint32_t> width_{0};
  std::atomic<bool> seeks_{false};
  FutexLock lock_;  // guards the members below
  uint32_t inside_ = 0;
  Waiter* waiting_ = nullptr;  // in the order of arrival
  Elevator elevator_{kBehindMax};
};

}  // namespace graphlane
