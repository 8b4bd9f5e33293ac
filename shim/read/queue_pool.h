// QueuePool: I/O queues that requests over several devices borrow. A queue is made
// when it is first borrowed.
//
// Threads, signal handlers: lock-free; signals are blocked while a queue is borrowed.
//
// A forked child gets no queue. After a fork beside 32 active threads, a new ring in the child was
// seen to wait for ever (tests/shim/test_storm.py); the cause is not known yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "iomgr/io/device_gate.h"
#include "iomgr/io/io_queue.h"
#include "shim/base/held_signals.h"

namespace graphlane::shim {

// I/Os in flight of one request: 16 of up to 24 MiB each.
inline constexpr uint32_t kRequestDepth = 16;

struct QueueSlot {
  // The process_epoch() of the process with the holding thread, or 0. A slot held by a thread of
  // the parent is free, because that thread does not exist in the child.
  std::atomic<uint32_t> holder{0};
  // Owned by the holder.
  IoQueue* queue = nullptr;
  int wake_fd = -1;    // an eventfd, written when a gate admits one of the I/Os
  uint32_t epoch = 0;  // of the process that made queue and wake_fd
  bool refused = false;
  IoQueueStorage storage;
  LaneIo ios[kRequestDepth];
  DeviceGate::Waiter waiters[kRequestDepth];  // for the I/O with the same index
};

class BorrowedQueue {
 public:
  BorrowedQueue();
  ~BorrowedQueue();
  BorrowedQueue(const BorrowedQueue&) = delete;
  BorrowedQueue& operator=(const BorrowedQueue&) = delete;

  explicit operator bool() const { return slot_ != nullptr; }
  QueueSlot& slot() const { return *slot_; }

  // The program closed its descriptor: a new queue is made next time.
  void discard();

 private:
  const HeldSignals signals_;
  QueueSlot* slot_;
};

// Whether no ancestor by fork has read striped files.
bool is_first_process();

// The backend that has moved bytes so far, for the report: its name, or "preadv".
const char* backend_in_use();

}  // namespace graphlane::shim
