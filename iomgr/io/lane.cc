#include "iomgr/io/lane.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

namespace graphlane {
namespace {

// With more threads than this on one device, they only contend for its queue.
constexpr uint32_t kLaneThreadsMax = 4;
// With SyncQueue each thread is one I/O in flight.
constexpr uint32_t kSyncThreadsMax = 32;
// Waiting I/Os before acquire() blocks: as many as the mount may have requests. Only waiting I/Os
// can be sorted and merged.
constexpr uint32_t kWaitingMax = 256;

}  // namespace

void LaneRequest::begin() {
  MutexLock lock(mu_);
  ++pending_;
}

void LaneRequest::on_done(int error) {
  MutexLock lock(mu_);
  if (error_ == 0) error_ = error;
  // Notified under the lock, because the waiter may destroy this as soon as it has the lock.
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

Outcome<std::unique_ptr<Lane>> Lane::start(std::string device, IoBackend backend, uint32_t depth,
                                           LaneQueue::Clock::duration patience,
                                           IoQueueMaker make_queue) {
  std::unique_ptr<Lane> lane(new Lane(patience));
  lane->device_ = std::move(device);
  const bool synchronous = backend == IoBackend::kThreads;
  const uint32_t thread_count = std::min(depth, synchronous ? kSyncThreadsMax : kLaneThreadsMax);
  const uint32_t queue_depth = std::min((depth + thread_count - 1) / thread_count, kQueueDepthMax);
  lane->pool_.resize(depth + kWaitingMax);
  for (LaneIo& io : lane->pool_) lane->release(&io);
  {
    MutexLock lock(lane->mu_);
    lane->waiting_.reserve(lane->pool_.size());
  }
  try {
    for (uint32_t i = 0; i < thread_count; ++i) {
      lane->workers_.push_back(std::make_unique<Worker>());
      Worker& worker = *lane->workers_.back();
      IoBackend chosen;
      const Result<IoQueue*> queue =
          make_queue(backend, queue_depth, &worker.storage, &chosen, /*fd_floor=*/0);
      if (!queue) {
        return make_error(queue.error().code, "{}: cannot set up {}: {}", lane->device_,
                          name_of(backend), std::strerror(queue.error().code));
      }
      worker.queue = *queue;
      if (queue_depth > 1) worker.wake = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      worker.batches.resize((*queue)->capacity());
      for (LaneBatch& batch : worker.batches) batch.next = std::exchange(worker.free, &batch);
      worker.thread = std::thread([raw = lane.get(), &worker] { raw->serve(worker); });
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
  // All must end before one is destroyed, because split() looks for other threads to wake.
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

LaneIo* Lane::acquire() {
  MutexLock lock(mu_);
  while (free_ == nullptr) freed_.wait(mu_);
  return take_free();
}

LaneIo* Lane::try_acquire() {
  MutexLock lock(mu_);
  return free_ == nullptr ? nullptr : take_free();
}

LaneIo* Lane::take_free() {
  LaneIo* const io = std::exchange(free_, free_->next);
  io->next = nullptr;
  return io;
}

void Lane::release(LaneIo* io) {
  MutexLock lock(mu_);
  io->next = free_;
  free_ = io;
  freed_.notify_one();
}

void Lane::push(LaneIo* io, Completion* end) {
  io->owner = end;
  MutexLock lock(mu_);
  waiting_.push(io, LaneQueue::Clock::now());
  // A thread that was woken before takes this one too: I/Os that come together cost one wake-up.
  if (!is_woken_) wake_one();
}

// Wakes an idle thread, or else one with room for more in flight.
void Lane::wake_one() {
  if (idle_count_ > 0) {
    is_woken_ = true;
    return work_.notify_one();
  }
  for (const auto& worker : workers_) {
    if (!worker->is_awaiting) continue;
    worker->is_awaiting = false;
    is_woken_ = true;
    constexpr uint64_t kOne = 1;
    (void)!::write(worker->wake.get(), &kOne, sizeof kOne);
    return;
  }
}

// Moves waiting I/Os into the thread's queue while it has room. Waits for one if there is nothing
// else to do. False: the lane ends.
bool Lane::take(Worker& worker) {
  IoQueue& queue = *worker.queue;
  const auto free_since = LaneQueue::Clock::now();
  MutexLock lock(mu_);
  worker.is_awaiting = is_woken_ = false;
  while (queue.in_flight() == 0) {
    if (waiting_.empty()) {
      if (stopping_) return false;
      ++idle_count_;
      work_.wait(mu_);
      --idle_count_;
      is_woken_ = false;
      continue;
    }
    const auto until = waiting_.waits_until(free_since);
    if (until <= LaneQueue::Clock::now()) break;
    ++idle_count_;
    work_.wait_until(mu_, until);
    --idle_count_;
    is_woken_ = false;
  }
  // One at a time when other threads are idle would be fairer, but a thread
  // holds the lock only for the arithmetic; preadv of SyncQueue runs unlocked.
  while (!waiting_.empty() && worker.has_room()) {
    LaneBatch* batch = std::exchange(worker.free, worker.free->next);
    waiting_.take(LaneQueue::Clock::now(), batch);
    // push() of SyncQueue does the I/O itself.
    const bool is_full = queue.in_flight() + 1 == queue.capacity();
    if (is_full && !waiting_.empty()) wake_one();
    mu_.unlock();
    for (LaneIo* io = batch->members; io != nullptr; io = io->next) {
      counters_.wait.add(batch->begun - io->arrived);
    }
    queue.push(&batch->io);
    mu_.lock();
  }
  if (!waiting_.empty() && !is_woken_) wake_one();
  worker.is_awaiting = worker.has_room() && worker.wake && queue.wake_by(worker.wake.get());
  return true;
}

void Lane::serve(Worker& worker) {
  ::pthread_setname_np(::pthread_self(), "graphlane-lane");  // as top -H shows it
  IoCompletion completions[kQueueDepthMax];
  while (take(worker)) {
    const Result<uint32_t> count = worker.queue->reap(completions);
    // Only a program that closes our descriptors could cause this, and there is none here.
    // Going on would block the callers for ever.
    if (!count) std::abort();
    for (uint32_t i = 0; i < *count; ++i) complete(worker, completions[i]);
  }
}

void Lane::complete(Worker& worker, const IoCompletion& completion) {
  auto& batch = *static_cast<LaneBatch*>(completion.io->owner);
  int error = 0;
  const IoStep step = settle(&batch.io, completion.result, &error);
  if (step == IoStep::kAgain) return worker.queue->push(&batch.io);
  if (step == IoStep::kFailed && batch.is_merged()) {
    split(batch);
  } else {
    end(batch, step == IoStep::kFailed ? error : 0);
  }
  batch.next = std::exchange(worker.free, &batch);
}

void Lane::end(LaneBatch& batch, int error) {
  counters_.count(batch.io.op, batch.io.moved_bytes, batch.io.segment_count);
  counters_.service.add(LaneQueue::Clock::now() - batch.begun);
  for (LaneIo* io = batch.members; io != nullptr;) {
    LaneIo* const member = std::exchange(io, io->next);
    auto* const request = static_cast<Completion*>(member->owner);
    if (member != batch.members) {
      counters_.merged_count.fetch_add(1, std::memory_order_relaxed);
    }
    release(member);
    request->on_done(error);
  }
}

// Retries each member alone, because the error may be one member's only.
void Lane::split(LaneBatch& batch) {
  for (LaneIo* io = batch.members; io != nullptr;) {
    LaneIo* const member = std::exchange(io, io->next);
    member->alone = true;
    push(member, static_cast<Completion*>(member->owner));
  }
}

}  // namespace graphlane
