// Lane: one device's queue and the threads that serve this device alone.
//
// Which of the waiting I/Os goes next, and with which others, is LaneQueue's to say.
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
  // One more I/O is under way.
  void begin();
  // One has; error 0 when it went well. The first error stays.
  void on_done(int error) override;
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
  std::atomic<uint64_t> merged_count{0};  // I/Os that went with another one
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> bytes_written{0};
  std::atomic<uint64_t> segment_count{0};
  LatencyHistogram wait;     // of an I/O, from push() until its call begins
  LatencyHistogram service;  // of a call, until all of it has moved

  void count(IoOp op, uint64_t bytes, uint64_t segments);
};

class Lane {
 public:
  // A piece that another thread is about to push takes so long: a disk seeks longer. (One thread
  // through the mount, eight disks, share of the ceiling: 0.75 without, 0.86; 10 ms: 0.87.)
  static constexpr std::chrono::milliseconds kPatience{3};

  // `depth` I/Os in flight over all of its threads; between two of them the device may wait for
  // `patience` (lane_queue.h). The backend must be one that works (not kAuto).
  static Outcome<std::unique_ptr<Lane>> start(std::string device, IoBackend backend,
                                              uint32_t depth, LaneQueue::Clock::duration patience,
                                              IoQueueMaker make_queue = &make_io_queue);
  // Ends what is queued and in flight first.
  ~Lane();

  // A free I/O; waits for one when all are in use, which is the back-pressure.
  LaneIo* acquire();
  // None: all are in use.
  LaneIo* try_acquire();
  // Gives one back that was not pushed.
  void release(LaneIo* io);
  // Queues it. When it has moved, or failed, it is released and `end` is told.
  void push(LaneIo* io, Completion* end);

  const std::string& device() const { return device_; }
  LaneCounters& counters() { return counters_; }

 private:
  struct Worker {
    IoQueueStorage storage;
    IoQueue* queue = nullptr;
    Fd wake;                         // an eventfd; none: the queue cannot be woken
    bool is_awaiting = false;        // more, while it waits for what is in flight; under mu_
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
  CondVar work_;       // somebody waits, or stopping_
  CondVar freed_;      // the free list has an entry
  uint32_t idle_count_ GUARDED_BY(mu_) = 0;  // threads that wait for work_
  LaneQueue waiting_ GUARDED_BY(mu_);
  LaneIo* free_ GUARDED_BY(mu_) = nullptr;
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
