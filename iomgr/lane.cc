#include "iomgr/lane.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>

namespace graphlane {
namespace {

// More threads than this on one device only contend for its queue.
constexpr uint32_t kLaneThreadsMax = 4;
// With SyncQueue a thread is an I/O in flight.
constexpr uint32_t kSyncThreadsMax = 32;
// I/Os waiting per I/O in flight, before acquire() holds the callers back.
constexpr uint32_t kQueuedPerInFlight = 4;

}  // namespace

void LaneRequest::begin() {
  MutexLock lock(mu_);
  ++pending_;
}

void LaneRequest::end(int error) {
  MutexLock lock(mu_);
  if (error_ == 0) error_ = error;
  // Notified under the lock: the waiter may destroy us as soon as it has it.
  if (--pending_ == 0) all_ended_.notify_all();
}

int LaneRequest::wait() {
  MutexLock lock(mu_);
  while (pending_ > 0) all_ended_.wait(mu_);
  return error_;
}

void LaneCounters::count(IoOp op, uint64_t bytes, uint64_t segments) {
  io_count.fetch_add(1, std::memory_order_relaxed);
  (op == IoOp::kRead ? bytes_read : bytes_written).fetch_add(bytes, std::memory_order_relaxed);
  segment_count.fetch_add(segments, std::memory_order_relaxed);
}

Lane::Worker::~Worker() {
  if (thread.joinable()) thread.join();
  if (queue != nullptr) queue->~IoQueue();
}

Outcome<std::unique_ptr<Lane>> Lane::start(std::string device, IoBackend backend, uint32_t depth) {
  std::unique_ptr<Lane> lane(new Lane());
  lane->device_ = std::move(device);
  const bool synchronous = backend == IoBackend::kThreads;
  const uint32_t thread_count = std::min(depth, synchronous ? kSyncThreadsMax : kLaneThreadsMax);
  const uint32_t queue_depth = std::min((depth + thread_count - 1) / thread_count, kQueueDepthMax);
  lane->pool_.resize(depth * kQueuedPerInFlight);
  for (LaneIo& io : lane->pool_) lane->release(&io);
  try {
    for (uint32_t i = 0; i < thread_count; ++i) {
      lane->workers_.push_back(std::make_unique<Worker>());
      Worker& worker = *lane->workers_.back();
      IoBackend chosen;
      const Result<IoQueue*> queue = make_io_queue(backend, queue_depth, &worker.storage, &chosen);
      if (!queue) {
        return make_error(queue.error().code, "{}: cannot set up {}: {}", lane->device_,
                          name_of(backend), std::strerror(queue.error().code));
      }
      worker.queue = *queue;
      worker.thread = std::thread([raw = lane.get(), &worker] { raw->serve(*worker.queue); });
    }
  } catch (const std::exception& error) {  // bad_alloc, or no more threads
    return make_error(EAGAIN, "{}: cannot start I/O threads: {}", lane->device_, error.what());
  }
  return lane;
}

Lane::~Lane() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  work_.notify_all();
  workers_.clear();  // joins
}

LaneIo* Lane::acquire() {
  MutexLock lock(mu_);
  while (free_ == nullptr) freed_.wait(mu_);
  LaneIo* io = free_;
  free_ = io->next;
  io->next = nullptr;
  return io;
}

void Lane::release(LaneIo* io) {
  MutexLock lock(mu_);
  io->next = free_;
  free_ = io;
  freed_.notify_one();
}

void Lane::push(LaneIo* io) {
  io->next = nullptr;
  MutexLock lock(mu_);
  if (queue_tail_ == nullptr) {
    queue_head_ = io;
  } else {
    queue_tail_->next = io;
  }
  queue_tail_ = io;
  work_.notify_one();
}

// Moves waiting I/Os into the thread's queue as far as it has room; waits for
// one when there is nothing else to do. False: the lane ends.
bool Lane::take(IoQueue& queue) {
  MutexLock lock(mu_);
  while (queue.in_flight() == 0 && queue_head_ == nullptr) {
    if (stopping_) return false;
    work_.wait(mu_);
  }
  // One at a time when other threads are idle would be fairer, but a thread
  // holds the lock only for the arithmetic; preadv of SyncQueue runs unlocked.
  while (queue_head_ != nullptr && queue.in_flight() < queue.capacity()) {
    LaneIo* io = queue_head_;
    queue_head_ = io->next;
    if (queue_head_ == nullptr) queue_tail_ = nullptr;
    mu_.unlock();
    queue.push(io);
    mu_.lock();
  }
  return true;
}

void Lane::serve(IoQueue& queue) {
  IoCompletion completions[kQueueDepthMax];
  while (take(queue)) {
    const Result<uint32_t> count = queue.reap(completions);
    // No program closes our descriptors here; the kernel has no other reason.
    assert(count.has_value());
    for (uint32_t i = 0; i < *count; ++i) complete(queue, completions[i]);
  }
}

void Lane::complete(IoQueue& queue, const IoCompletion& completion) {
  LaneIo* io = completion.io;
  int error = 0;
  switch (settle(io, completion.result, &error)) {
    case IoStep::kAgain: queue.push(io); return;
    case IoStep::kDone: end(io, 0); return;
    case IoStep::kFailed: end(io, error); return;
  }
}

void Lane::end(LaneIo* io, int error) {
  counters_.count(io->op, io->moved_bytes, io->segment_count);
  auto* request = static_cast<LaneRequest*>(io->owner);
  release(io);
  request->end(error);
}

}  // namespace graphlane
