// Lane: one device's queue and the threads that serve this device alone.
//
// I/Os are taken in the order of arrival. The elevator with its deadline, and
// merging across requests, belong into take(): it chooses what a thread submits
// next.
//
// Threads: push() and stats() from any thread. Each lane thread owns an IoQueue.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/mutex.h"
#include "iomgr/io_queue.h"
#include "iomgr/lane_io.h"

namespace graphlane {

// One caller's request, waiting for its lane I/Os on all devices.
class LaneRequest {
 public:
  // One more I/O is under way.
  void begin();
  // One has ended; error 0 when it went well. The first error stays.
  void end(int error);
  // Blocks until all have ended; the error, or 0.
  int wait();

 private:
  Mutex mu_;
  CondVar all_ended_;
  uint32_t pending_ GUARDED_BY(mu_) = 0;
  int error_ GUARDED_BY(mu_) = 0;
};

// Written by the lane's threads, read by anyone. Relaxed throughout: they are
// counts, nothing is ordered by them.
struct LaneCounters {
  std::atomic<uint64_t> io_count{0};
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> bytes_written{0};
  std::atomic<uint64_t> segment_count{0};

  void count(IoOp op, uint64_t bytes, uint64_t segments);
};

class Lane {
 public:
  // `depth` I/Os in flight over all of its threads. The backend must be one
  // that works (not kAuto).
  static Outcome<std::unique_ptr<Lane>> start(std::string device, IoBackend backend,
                                              uint32_t depth);
  // Nothing may be queued or in flight.
  ~Lane();

  // A free I/O; waits for one when all are in use, which is the back-pressure.
  LaneIo* acquire();
  // Gives one back that was not pushed.
  void release(LaneIo* io);
  // Queues it; io->owner is its LaneRequest. The lane releases it.
  void push(LaneIo* io);

  const std::string& device() const { return device_; }
  LaneCounters& counters() { return counters_; }

 private:
  struct Worker {
    IoQueueStorage storage;
    IoQueue* queue = nullptr;
    std::thread thread;
    ~Worker();
  };

  Lane() = default;
  void serve(IoQueue& queue);
  bool take(IoQueue& queue);
  void complete(IoQueue& queue, const IoCompletion& completion);
  void end(LaneIo* io, int error);

  // Constant after start().
  std::string device_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<LaneIo> pool_;

  LaneCounters counters_;

  Mutex mu_;
  CondVar work_;       // the queue has an entry, or stopping_
  CondVar freed_;      // the free list has an entry
  LaneIo* queue_head_ GUARDED_BY(mu_) = nullptr;
  LaneIo* queue_tail_ GUARDED_BY(mu_) = nullptr;
  LaneIo* free_ GUARDED_BY(mu_) = nullptr;
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
