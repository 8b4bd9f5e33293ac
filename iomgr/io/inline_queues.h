// InlineQueues: the I/O queues of a process without I/O threads (inline_engine.h).
//
//   Loan         a queue for one request over several devices; made when it is first lent
//   prefetches   the queue for reads that no thread waits for (aio_read_queue.h)
//
// All of it is zero at first, so that it takes no memory before a request over several devices.
//
// Threads, signal handlers: lock-free; signals are blocked while a queue is lent.
//
// A forked child gets no queue. After a fork beside 32 active threads, a new ring in the child was
// seen to wait for ever (tests/shim/test_storm.py); the cause is not known yet.
#pragma once

#include <atomic>
#include <cstdint>

#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/io/aio_read_queue.h"
#include "iomgr/io/device_gate.h"
#include "iomgr/io/io_queue.h"

namespace graphlane {

// The program in which the queues live.
struct InlineProcess {
  uint32_t (*epoch)();      // differs between a process and its forked children; 0: unknown
  int (*fd_floor)();        // the least number for a descriptor of ours
  void (*protect)(int fd);  // the program cannot close it from now on
};

class InlineQueues {
 public:
  // I/Os in flight of one request: 16 of up to 24 MiB each.
  static constexpr uint32_t kRequestDepth = 16;

  // The I/Os of one request, and their waiters at gates, by the same index.
  struct Memory {
    LaneIo ios[kRequestDepth];
    DeviceGate::Waiter waiters[kRequestDepth];
  };

 private:
  struct Slot {
    // The epoch of the process with the holding thread, or 0. A slot held by a thread of the parent
    // is free, because that thread does not exist in the child.
    std::atomic<uint32_t> holder{0};
    // Owned by the holder. The rest is valid while there is a queue.
    IoQueue* queue = nullptr;
    bool refused = false;
    uint32_t epoch = 0;  // of the process that made the queue
    int wake_fd = 0;     // an eventfd, written when a gate admits one of the I/Os; -1: none
    IoQueueStorage storage{};
    alignas(Memory) unsigned char memory[sizeof(Memory)] = {};
  };

 public:
  // A queue for the time of one request.
  class Loan {
   public:
    Loan(InlineQueues& queues, const InlineProcess& process, IoBackend backend);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    // False: no queue is free, or none may be used.
    explicit operator bool() const { return slot_ != nullptr; }
    IoQueue& queue() const { return *slot_->queue; }
    Memory& memory() const { return *reinterpret_cast<Memory*>(slot_->memory); }
    int wake_fd() const { return slot_->wake_fd; }

    // The program closed its descriptor: a new queue is made next time.
    void discard();

   private:
    const BlockedSignals signals_;
    Slot* slot_;
  };

  // Whether no ancestor by fork has used these queues.
  bool is_first(const InlineProcess& process);

  // Null: another thread is making it.
  AioReadQueue* prefetches();

  // The backend that has moved bytes so far: its name, or "preadv".
  const char* backend_in_use() const;

 private:
  // With more concurrent requests than this, the others are served without a queue.
  static constexpr uint32_t kQueueCount = 16;

  bool is_ready(Slot& slot, uint32_t epoch, const InlineProcess& process, IoBackend backend);
  Slot* borrow(const InlineProcess& process, IoBackend backend);

  std::atomic<uint32_t> first_epoch_{0};  // of the process that came first
  std::atomic<IoBackend> backend_chosen_{IoBackend::kAuto};
  std::atomic<AioReadQueue*> prefetches_{nullptr};
  std::atomic<bool> prefetches_begun_{false};
  Slot slots_[kQueueCount];
  alignas(AioReadQueue) unsigned char prefetch_storage_[sizeof(AioReadQueue)] = {};
};

}  // namespace graphlane
