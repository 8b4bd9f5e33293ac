// Lane: one device's queue and the threads that serve this device alone.
//
// LaneQueue decides which I/Os go next, and which are merged.
//
// Threads: push() and stats() from any thread. Each lane thread owns an IoQueue.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/latency.h"
#include "iomgr/base/mutex.h"
#include "iomgr/io/engine.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/io/lane_queue.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

// One caller's request, waiting for its lane I/Os on all devices.
class LaneRequest final : public Completion {
 public:
  // Another I/O is in flight.
  void begin();
  // An I/O has ended; error 0: success. The first error stays.
  void on_done(int error) override;
  // Blocks until all I/Os have ended; the error, or 0.
  int wait();

 private:
  Mutex mu_;
  CondVar all_ended_;
  uint32_t pending_ GUARDED_BY(mu_) = 0;
  int error_ GUARDED_BY(mu_) = 0;
};

// Written by the lane's threads, read by any. Relaxed throughout: the counts order nothing.
struct LaneCounters {
  std::atomic<uint64_t> io_count{0};
  std::atomic<uint64_t> merged_count{0};  // I/Os that were merged into another
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> bytes_written{0};
  std::atomic<uint64_t> segment_count{0};
  LatencyHistogram wait;     // of an I/O, from push() until its call begins
  LatencyHistogram service;  // of a call, until all of it has moved

  void count(IoOp op, uint64_t bytes, uint64_t segments);
};

class Lane {
 public:
  // How long a piece takes that another thread is about to push. A disk's seek is longer.
  static constexpr std::chrono::milliseconds kPatience{3};

  // `depth`: I/Os in flight over all of its threads. `patience`: how long the device may wait for
  // the next one (lane_queue.h). The backend must be one that works (not kAuto).
  static Outcome<std::unique_ptr<Lane>> start(std::string device, IoBackend backend, uint32_t depth,
                                              LaneQueue::Clock::duration patience,
                                              IoQueueMaker make_queue = &make_io_queue);
  // Completes the queued I/Os first.
  ~Lane();

  // A free I/O. Blocks while all are in use: this is the back-pressure.
  LaneIo* acquire();
  // Null: all are in use.
  LaneIo* try_acquire();
  // Returns an I/O that was not pushed.
  void release(LaneIo* io);
  // Queues the I/O. When it has ended, it is released and `end` is told.
  void push(LaneIo* io, Completion* end);

  const std::string& device() const { return device_; }
  LaneCounters& counters() { return counters_; }

 private:
  struct Worker {
    IoQueueStorage storage;
    IoQueue* queue = nullptr;
    Fd wake;                         // an eventfd; empty: the queue cannot be woken
    bool is_awaiting = false;        // waits for completions, but takes more work; under mu_
    std::vector<LaneBatch> batches;  // as many as may be in flight
    LaneBatch* free = nullptr;
    std::thread thread;
    bool has_room() const { return queue->in_flight() < queue->capacity(); }
    ~Worker();
  };

  explicit Lane(LaneQueue::Clock::duration patience) : waiting_(patience) {}
  void serve(Worker& worker);
  void wake_one() REQUIRES(mu_);
  bool take(Worker& worker);
  void complete(Worker& worker, const IoCompletion& completion);
  void end(LaneBatch& batch, int error);
  void split(LaneBatch& batch);
  LaneIo* take_free() REQUIRES(mu_);

  // Constant after start().
  std::string device_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<LaneIo> pool_;

  LaneCounters counters_;

  Mutex mu_;
  CondVar work_;                             // an I/O waits, or stopping_
  CondVar freed_;                            // the free list has an entry
  uint32_t idle_count_ GUARDED_BY(mu_) = 0;  // threads that wait for work_
  // A thread was woken, and none has looked at waiting_ since. Each that looks takes what it has
  // room for and wakes another one for the rest.
  bool is_woken_ GUARDED_BY(mu_) = false;
  LaneQueue waiting_ GUARDED_BY(mu_);
  LaneIo* free_ GUARDED_BY(mu_) = nullptr;
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
