// DeviceGate: how many I/Os of this process a device has at a time, and whose is
// next.
//
// What a Lane is with threads of its own, this is without: in a preloaded program,
// those who read wait at the gates of their devices, in the order of an Elevator, and then do
// their I/O themselves. On a disk, streams of several threads would make the head jump between
// them (CSMqGraph §2.3).
//
//   waiter ──enter()──► true: go on
//                └────► false: later its caller is told, and waiter.entered is set
//   I/O done ──leave()
//
// Threads: everything is safe from any thread. Not across fork(): a child begins
// without (shim/read/transfer.h).
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/futex.h"
#include "iomgr/io/elevator.h"

namespace graphlane {

// Who waits, at any number of gates.
class GateCaller {
 public:
  // Where else to tell it: an eventfd, or -1.
  explicit GateCaller(int event_fd = -1) : event_fd_(event_fd) {}

  // Counts what it was told; pass an older count to wait_since().
  uint32_t told() const { return told_.load(std::memory_order_acquire); }
  void wait_since(uint32_t count) const { futex_wait(told_, count); }
  void tell();

 private:
  const int event_fd_;
  std::atomic<uint32_t> told_{0};
};

class DeviceGate {
 public:
  struct Waiter {
    // Its place on the device.
    int fd = -1;
    uint64_t part_offset = 0;
    uint64_t length_bytes = 0;
    GateCaller* caller = nullptr;
    std::atomic<bool> entered{false};

   private:
    friend class DeviceGate;
    Waiter* next = nullptr;
    uint64_t turn = 0;  // by the Elevator
  };

  // At most `width` at once; 0: any number, and nobody needs to ask.
  void set_width(uint32_t width) { width_.store(width, std::memory_order_relaxed); }
  uint32_t width() const { return width_.load(std::memory_order_relaxed); }
  bool is_narrow() const { return width() > 0; }
  // Whether it is a disk, which is best read by one long stream.
  void set_seeks(bool seeks) { seeks_.store(seeks, std::memory_order_relaxed); }
  bool seeks() const { return seeks_.load(std::memory_order_relaxed); }

  // Whether nobody is within or waits.
  bool is_free();

  // The waiter lives until it has left, or given up.
  bool enter(Waiter* waiter);
  void leave();
  // Of one who waits or has entered, and goes without I/O.
  void give_up(Waiter* waiter);

 private:
  // As far as eight threads that read 24 MiB each from two devices are apart. (32 MiB: the first
  // of four was left behind, and had 0.94 of the ceiling.)
  static constexpr uint64_t kBehindMax = 96 << 20;

  Waiter** best();
  void forget(Waiter** place);
  void admit(Waiter* waiter);

  std::atomic<uint32_t> width_{0};
  std::atomic<bool> seeks_{false};
  FutexLock lock_;  // over what follows
  uint32_t inside_ = 0;
  Waiter* waiting_ = nullptr;  // in the order of arrival
  Elevator elevator_{kBehindMax};
};

}  // namespace graphlane
