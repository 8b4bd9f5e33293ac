#include "iomgr/io/inline_engine.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

constexpr uint64_t kVerifiedIoMin = 1 << 20;
constexpr uint32_t kRequestDepth = InlineQueues::kRequestDepth;

bool within_one_unit(const PartRequest& request) {
  const uint64_t depth = request.map.geometry().stripe_depth_bytes;
  const uint64_t begin = request.pieces.front().range.offset;
  const uint64_t end = request.pieces.back().range.end();
  return begin / depth == (end - 1) / depth;
}

// The size of a read's I/Os that are verified: what has arrived is verified while the rest is in
// flight. All go at once, because one that waits for another's end leaves its device idle.
uint64_t verified_io_bytes(const PartRequest& request) {
  const StripeGeometry& geometry = request.map.geometry();
  const uint64_t length = request.pieces.back().range.end() - request.pieces.front().range.offset;
  const uint64_t of_device = length / geometry.device_count + geometry.stripe_depth_bytes;
  const uint64_t count = std::max(kRequestDepth / geometry.device_count, 1u);
  return std::max(round_up((of_device + count - 1) / count, kBlockSize), kVerifiedIoMin);
}

}  // namespace

// Enters a device's gate, if it has one, for a scope.
class InlineEngine::GateScope {
 public:
  GateScope(DeviceGate* gate, const LaneIo& io) : gate_(gate) {
    if (gate_ == nullptr) return;
    signals_.emplace();  // a handler may leave by siglongjmp()
    waiter_.fd = io.fd;
    waiter_.part_offset = io.part_offset;
    waiter_.length_bytes = io.length_bytes;
    waiter_.caller = &caller_;
    const uint32_t seen = caller_.notifications();
    if (gate_->enter(&waiter_)) return;
    while (!waiter_.entered.load(std::memory_order_acquire)) caller_.wait_after(seen);
  }
  ~GateScope() {
    if (gate_ != nullptr) gate_->leave();
  }
  GateScope(const GateScope&) = delete;
  GateScope& operator=(const GateScope&) = delete;

 private:
  DeviceGate* const gate_;
  std::optional<BlockedSignals> signals_;  // constructed first, destroyed last
  GateCaller caller_;
  DeviceGate::Waiter waiter_;
};

// One request on all devices at once. Where a disk is busy it waits at the gate, and goes on with
// its other I/O meanwhile.
class InlineEngine::ParallelRun {
 public:
  ParallelRun(InlineEngine& engine, const PartRequest& request, InlineQueues::Loan& loan)
      : engine_(engine),
        cutter_(request),
        direct_(request.direct),
        meanwhile_(request.meanwhile),
        queue_(loan.queue()),
        memory_(loan.memory()),
        wake_fd_(loan.wake_fd()),
        caller_(wake_fd_) {
    for (uint32_t i = 0; i < kRequestDepth; ++i) free_[i] = kRequestDepth - 1 - i;
  }

  // 0 or an errno; *queue_failed: it is the queue's own error (EBADF and the like).
  int run(bool* queue_failed) {
    for (;;) {
      const uint32_t seen = caller_.notifications();
      begin();
      if (queue_.in_flight() == 0 && waiting_count_ == 0) return first_error_;
      const Result<void> ended = wait(seen);
      if (ended) {
        tell_of_idle();
        continue;
      }
      *queue_failed = true;
      give_up();
      return ended.error().code;
    }
  }

 private:
  DeviceGate* gate_of(uint32_t i) const { return engine_.gate_for(memory_.ios[i], direct_); }

  // Submits what may go: I/Os that a gate has admitted, and new ones.
  void begin() {
    for (uint32_t n = 0; n < waiting_count_;) {
      const uint32_t i = waiting_[n];
      if (memory_.waiters[i].entered.load(std::memory_order_acquire)) {
        waiting_[n] = waiting_[--waiting_count_];
        push(i);
      } else {
        ++n;
      }
    }
    while (more_ && first_error_ == 0 && free_count_ > 0) {
      const uint32_t i = free_[free_count_ - 1];
      more_ = cutter_.next(&memory_.ios[i]);
      if (!more_) return;
      --free_count_;
      if (enter(i))
        push(i);
      else
        waiting_[waiting_count_++] = i;
    }
  }

  bool enter(uint32_t i) {
    DeviceGate* const gate = gate_of(i);
    if (gate == nullptr) return true;
    DeviceGate::Waiter& waiter = memory_.waiters[i];
    waiter.fd = memory_.ios[i].fd;
    waiter.part_offset = memory_.ios[i].part_offset;
    waiter.length_bytes = memory_.ios[i].length_bytes;
    waiter.caller = &caller_;
    return gate->enter(&waiter);
  }

  void push(uint32_t i) {
    in_flight_[i] = true;
    queue_.push(&memory_.ios[i]);
  }

  // Waits until an I/O has ended, or a gate has admitted one.
  Result<void> wait(uint32_t seen) {
    if (waiting_count_ > 0) {
      const bool wakes = wake_fd_ >= 0 && queue_.wake_by(wake_fd_);
      if (!wakes && queue_.in_flight() == 0) {
        caller_.wait_after(seen);
        return {};
      }
    }
    IoCompletion completions[kRequestDepth];
    const Result<uint32_t> reaped = queue_.reap(completions);
    if (!reaped) return reaped.error();
    for (uint32_t n = 0; n < *reaped; ++n) end(completions[n]);
    return {};
  }

  void end(const IoCompletion& completion) {
    LaneIo* const io = completion.io;
    int error = 0;
    const IoStep step = settle(io, completion.result, &error);
    if (step == IoStep::kAgain && first_error_ == 0) return queue_.push(io);
    const auto i = static_cast<uint32_t>(io - memory_.ios);
    if (DeviceGate* const gate = gate_of(i)) {
      gate->leave();
      idle_ = idle_ || gate->is_free();
    }
    in_flight_[i] = false;
    if (step == IoStep::kDone) engine_.count(io->device_index, io->op, io->moved_bytes, 1);
    if (step == IoStep::kFailed && first_error_ == 0) first_error_ = error;
    free_[free_count_++] = i;
  }

  void tell_of_idle() {
    if (!idle_) return;
    idle_ = false;
    const bool waits = queue_.in_flight() > 0 || waiting_count_ > 0;
    if (waits && meanwhile_ != nullptr && first_error_ == 0) meanwhile_->device_idle();
  }

  void give_up() {
    for (uint32_t n = 0; n < waiting_count_; ++n) {
      gate_of(waiting_[n])->give_up(&memory_.waiters[waiting_[n]]);
    }
    for (uint32_t i = 0; i < kRequestDepth; ++i) {
      if (DeviceGate* const gate = in_flight_[i] ? gate_of(i) : nullptr) gate->leave();
    }
  }

  InlineEngine& engine_;
  RequestCutter cutter_;
  const bool direct_;
  Meanwhile* const meanwhile_;
  IoQueue& queue_;
  InlineQueues::Memory& memory_;
  const int wake_fd_;
  GateCaller caller_;
  bool more_ = true;
  bool idle_ = false;  // a device is idle, and `meanwhile_` was not told yet
  int first_error_ = 0;
  uint32_t free_[kRequestDepth];
  uint32_t free_count_ = kRequestDepth;
  uint32_t waiting_[kRequestDepth];  // I/Os at gates
  uint32_t waiting_count_ = 0;
  bool in_flight_[kRequestDepth] = {};
};

// The gate of a disk, or of a device with a given depth, for I/O past the page cache. None in a
// forked child, which does not know the I/Os in the gate.
DeviceGate* InlineEngine::gate_for(const LaneIo& io, bool direct) const {
  DeviceGate* const gate = direct && options_.gates ? gates_[io.device_index] : nullptr;
  return gate != nullptr && gate->is_narrow() && queues_.is_first(process_) ? gate : nullptr;
}

// Does the I/O device after device. 0 or an errno.
int InlineEngine::run_in_turn(RequestCutter& cutter, bool direct) {
  LaneIo io;
  while (cutter.next(&io)) {
    const GateScope gate(gate_for(io, direct), io);
    if (const int error = move_now(&io); error != 0) return error;
    count(io.device_index, io.op, io.moved_bytes, 1);
  }
  return 0;
}

// False: no queue is available.
bool InlineEngine::run_by_queue(const PartRequest& request, int* error) {
  InlineQueues::Loan loan(queues_, process_, options_.backend);
  if (!loan) return false;
  bool queue_failed = false;
  *error = ParallelRun(*this, request, loan).run(&queue_failed);
  if (queue_failed) loan.discard();
  return !queue_failed;
}

PartRequest InlineEngine::limited(PartRequest request) const {
  if (!options_.merges) request.io_size_max = request.map.geometry().stripe_depth_bytes;
  if (request.op == IoOp::kRead && request.parts.sums().verifies()) {
    request.io_size_max = std::min(request.io_size_max, verified_io_bytes(request));
  }
  return request;
}

int InlineEngine::run(const PartRequest& whole) {
  const PartRequest request = limited(whole);
  int error = 0;
  if (!within_one_unit(request) && run_by_queue(request, &error)) return error;
  RequestCutter cutter(request);
  return run_in_turn(cutter, request.direct);
}

DeviceSet InlineEngine::idle_devices() {
  if (options_.backend == IoBackend::kThreads) return 0;
  const uint32_t device_count = map_.geometry().device_count;
  const bool anywhere = prefetch_ == Prefetch::kAnywhere;
  DeviceSet idle = anywhere ? all_devices(device_count) : 0;
  for (uint32_t d = 0; d < device_count && !anywhere; ++d) {
    DeviceGate* const gate = gates_[d];
    const bool is_idle = gate != nullptr && gate->seeks() && gate->is_free();
    if (is_idle) idle |= DeviceSet{1} << d;
  }
  if (idle == 0) return 0;
  AioReadQueue* const queue = queues_.prefetches();
  return queue != nullptr && queue->works() ? idle : 0;
}

bool InlineEngine::submit(const PartRequest& whole, Completion* completion) {
  AioReadQueue* const queue = queues_.prefetches();
  if (queue == nullptr) return false;
  const PartRequest request = limited(whole);
  // Counted before the submission, because it may end in another thread at once.
  uint32_t ios[kDeviceCountMax] = {};
  uint64_t bytes[kDeviceCountMax] = {};
  RequestCutter cutter(request);
  for (LaneIo io; cutter.next(&io);) {
    ++ios[io.device_index];
    bytes[io.device_index] += io.expected_bytes;
  }
  if (!queue->submit(request, completion)) return false;
  for (uint32_t d = 0; d < map_.geometry().device_count; ++d) {
    if (ios[d] > 0) count(d, IoOp::kRead, bytes[d], ios[d]);
  }
  return true;
}

bool InlineEngine::poll() {
  AioReadQueue* const queue = queues_.prefetches();
  return queue != nullptr && queue->poll();
}

bool InlineEngine::read_within_unit(const PartFiles& parts, ByteRange range, void* buffer) {
  if (range.length_bytes == 0 || parts.sums().verifies()) return false;
  const Segment at = map_.first_segment(range);
  if (at.length_bytes != range.length_bytes) return false;
  const ssize_t n =
      sys::pread(parts.buffered(at.device_index), buffer, at.length_bytes, at.part_offset);
  if (n != static_cast<ssize_t>(at.length_bytes)) return false;
  count(at.device_index, IoOp::kRead, at.length_bytes, 1);
  return true;
}

ssize_t InlineEngine::read_up_to_fault(PartRequest request) {
  constexpr uint64_t kPage = 4096;
  Piece page = request.pieces.front();
  request.pieces = {&page, 1};
  auto* const begin = static_cast<char*>(page.buffer);
  const uint64_t end = page.range.end();
  uint64_t done = 0;
  while (page.range.offset < end) {
    const uint64_t in_page = kPage - reinterpret_cast<uintptr_t>(begin + done) % kPage;
    const uint64_t left = end - page.range.offset;
    page.range.length_bytes = in_page < left ? in_page : left;
    page.buffer = begin + done;
    RequestCutter cutter(request);
    if (run_in_turn(cutter, request.direct) != 0) break;
    done += page.range.length_bytes;
    page.range.offset += page.range.length_bytes;
  }
  return done > 0 ? static_cast<ssize_t>(done) : -EFAULT;
}

ssize_t InlineEngine::write_in_order(const PartRequest& request) {
  const ByteRange range = request.pieces.front().range;
  const auto* const bytes = static_cast<const char*>(request.pieces.front().buffer);
  const PartFiles& parts = request.parts;
  bool direct = request.direct;
  uint64_t done = 0;
  int error = 0;
  while (done < range.length_bytes && error == 0) {
    const Segment at = map_.first_segment(
        {.offset = range.offset + done, .length_bytes = range.length_bytes - done});
    const int part = direct ? parts.direct(at.device_index) : parts.buffered(at.device_index);
    const ssize_t n = sys::pwrite(part, bytes + done, at.length_bytes, at.part_offset);
    if (n > 0) {
      count(at.device_index, IoOp::kWrite, static_cast<uint64_t>(n), 1);
      done += static_cast<uint64_t>(n);
      direct = direct && static_cast<uint64_t>(n) == at.length_bytes;
    } else if (n < 0 && errno == EINVAL && direct) {
      direct = false;  // the filesystem needs a larger alignment than 4096
    } else if (n == 0 || errno != EINTR) {
      error = n == 0 ? EIO : errno;
    }
  }
  return done > 0 || error == 0 ? static_cast<ssize_t>(done) : -error;
}

}  // namespace graphlane
