// QueuePool: I/O queues that requests over several devices borrow. A queue is made
// when it is first borrowed.
//
// Threads, signal handlers: lock-free; signals are held while a queue is borrowed.
// A child by fork gets none: with 32 threads at work when it was forked, a ring of
// its own has been seen to wait for ever (tests/shim/test_storm.py), and why is not
// known yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "iomgr/io/device_gate.h"
#include "iomgr/io/io_queue.h"
#include "shim/base/held_signals.h"

namespace graphlane {

// I/Os in flight of one request: 16 of up to 24 MiB each.
inline constexpr uint32_t kRequestDepth = 16;

struct QueueSlot {
  // The process_epoch() of the process whose thread has it, or 0. A slot that a
  // thread of our parent had is free: that thread does not exist here.
  std::atomic<uint32_t> holder{0};
  // Owned by the holder.
  IoQueue* queue = nullptr;
  int wake_fd = -1;    // an eventfd: a gate has let one of the I/Os in
  uint32_t epoch = 0;  // of the process that made them
  bool refused = false;
  IoQueueStorage storage;
  LaneIo ios[kRequestDepth];
  DeviceGate::Waiter waiters[kRequestDepth];  // of the I/O with the same index
};

class BorrowedQueue {
 public:
  BorrowedQueue();
  ~BorrowedQueue();
  BorrowedQueue(const BorrowedQueue&) = delete;
  BorrowedQueue& operator=(const BorrowedQueue&) = delete;

  explicit operator bool() const { return slot_ != nullptr; }
  QueueSlot& slot() const { return *slot_; }

  // The program closed it under us: another one is made next time.
  void discard();

 private:
  const HeldSignals signals_;
  QueueSlot* slot_;
};

// Whether this is no child of one that has read striped files itself.
bool is_first_process();

// What has moved bytes so far, for the report: a backend's name, or "preadv".
const char* backend_in_use();

}  // namespace graphlane
