#include "shim/read/transfer.h"

#include <cerrno>
#include <optional>

#include "iomgr/base/sys.h"
#include "iomgr/io/engine.h"
#include "iomgr/read/aio_read_queue.h"
#include "iomgr/volume/parts/lane_io.h"
#include "shim/base/report.h"
#include "shim/base/settings.h"
#include "shim/read/queue_pool.h"
#include "shim/read/read_cache.h"
#include "shim/read/sweep_step.h"
#include "shim/share/shared_reader.h"

namespace graphlane::shim {
namespace {

constexpr uint64_t kVerifiedIoMax = 1 << 20;

void count(const OpenFile& file, const LaneIo& io) {
  file.counters[io.device_index]->count(io.op, io.moved_bytes);
}

// The gate of a disk, or of a device with a given depth, for I/O past the page cache. None in a
// forked child, which does not know the I/Os in the gate.
DeviceGate* gate_for(const OpenFile& file, const LaneIo& io, bool direct) {
  DeviceGate* const gate = direct && settings().lanes ? file.gates[io.device_index] : nullptr;
  return gate != nullptr && gate->is_narrow() && is_first_process() ? gate : nullptr;
}

// Enters a device's gate, if it has one, for a scope.
class GateScope {
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
  std::optional<HeldSignals> signals_;  // constructed first, destroyed last
  GateCaller caller_;
  DeviceGate::Waiter waiter_;
};

// Does the I/O device after device. 0 or an errno.
int move_in_turn(const OpenFile& file, RequestCutter& cutter, bool direct) {
  LaneIo io;
  while (cutter.next(&io)) {
    const GateScope gate(gate_for(file, io, direct), io);
    IoStep step;
    int error = 0;
    do {
      const ssize_t moved = io.op == IoOp::kRead
                                ? sys::preadv(io.fd, io.iov, io.iov_count, io.part_offset)
                                : sys::pwritev(io.fd, io.iov, io.iov_count, io.part_offset);
      step = settle(&io, moved < 0 ? -errno : moved, &error);
    } while (step == IoStep::kAgain);
    if (step == IoStep::kFailed) return error;
    count(file, io);
  }
  return 0;
}

// One request on all devices at once. Where a disk is busy it waits at the gate, and goes on with
// its other I/O meanwhile.
class ParallelTransfer {
 public:
  ParallelTransfer(const OpenFile& file, const PartRequest& request, QueueSlot& slot)
      : file_(file),
        cutter_(request),
        direct_(request.direct),
        meanwhile_(request.meanwhile),
        slot_(slot),
        caller_(slot.wake_fd) {
    for (uint32_t i = 0; i < kRequestDepth; ++i) free_[i] = kRequestDepth - 1 - i;
  }

  // 0 or an errno; *queue_failed: it is the queue's own error (EBADF and the like).
  int run(bool* queue_failed) {
    for (;;) {
      const uint32_t seen = caller_.notifications();
      begin();
      if (slot_.queue->in_flight() == 0 && waiting_count_ == 0) return first_error_;
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
  DeviceGate* gate_of(uint32_t i) const { return gate_for(file_, slot_.ios[i], direct_); }

  // Submits what may go: I/Os that a gate has admitted, and new ones.
  void begin() {
    for (uint32_t n = 0; n < waiting_count_;) {
      const uint32_t i = waiting_[n];
      if (slot_.waiters[i].entered.load(std::memory_order_acquire)) {
        waiting_[n] = waiting_[--waiting_count_];
        push(i);
      } else {
        ++n;
      }
    }
    while (more_ && first_error_ == 0 && free_count_ > 0) {
      const uint32_t i = free_[free_count_ - 1];
      more_ = cutter_.next(&slot_.ios[i]);
      if (!more_) return;
      --free_count_;
      if (enter(i)) {
        push(i);
      } else {
        waiting_[waiting_count_++] = i;
      }
    }
  }

  bool enter(uint32_t i) {
    DeviceGate* const gate = gate_of(i);
    if (gate == nullptr) return true;
    DeviceGate::Waiter& waiter = slot_.waiters[i];
    waiter.fd = slot_.ios[i].fd;
    waiter.part_offset = slot_.ios[i].part_offset;
    waiter.length_bytes = slot_.ios[i].length_bytes;
    waiter.caller = &caller_;
    return gate->enter(&waiter);
  }

  void push(uint32_t i) {
    in_flight_[i] = true;
    slot_.queue->push(&slot_.ios[i]);
  }

  // Waits until an I/O has ended, or a gate has admitted one.
  Result<void> wait(uint32_t seen) {
    if (waiting_count_ > 0) {
      const bool wakes = slot_.wake_fd >= 0 && slot_.queue->wake_by(slot_.wake_fd);
      if (!wakes && slot_.queue->in_flight() == 0) {
        caller_.wait_after(seen);
        return {};
      }
    }
    IoCompletion completions[kRequestDepth];
    const Result<uint32_t> reaped = slot_.queue->reap(completions);
    if (!reaped) return reaped.error();
    for (uint32_t n = 0; n < *reaped; ++n) end(completions[n]);
    return {};
  }

  void end(const IoCompletion& completion) {
    LaneIo* const io = completion.io;
    int error = 0;
    const IoStep step = settle(io, completion.result, &error);
    if (step == IoStep::kAgain && first_error_ == 0) return slot_.queue->push(io);
    const auto i = static_cast<uint32_t>(io - slot_.ios);
    if (DeviceGate* const gate = gate_of(i)) {
      gate->leave();
      idle_ = idle_ || gate->is_free();
    }
    in_flight_[i] = false;
    if (step == IoStep::kDone) count(file_, *io);
    if (step == IoStep::kFailed && first_error_ == 0) first_error_ = error;
    free_[free_count_++] = i;
  }

  void tell_of_idle() {
    if (!idle_) return;
    idle_ = false;
    const bool waits = slot_.queue->in_flight() > 0 || waiting_count_ > 0;
    if (waits && meanwhile_ != nullptr && first_error_ == 0) meanwhile_->device_idle();
  }

  void give_up() {
    for (uint32_t n = 0; n < waiting_count_; ++n) {
      gate_of(waiting_[n])->give_up(&slot_.waiters[waiting_[n]]);
    }
    for (uint32_t i = 0; i < kRequestDepth; ++i) {
      if (DeviceGate* const gate = in_flight_[i] ? gate_of(i) : nullptr) gate->leave();
    }
  }

  const OpenFile& file_;
  RequestCutter cutter_;
  const bool direct_;
  Meanwhile* const meanwhile_;
  QueueSlot& slot_;
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

bool within_one_unit(const PartRequest& request) {
  const uint64_t depth = request.map.geometry().stripe_depth_bytes;
  const uint64_t begin = request.pieces.front().range.offset;
  const uint64_t end = request.pieces.back().range.end();
  return begin / depth == (end - 1) / depth;
}

// Moves the request by a queue; false: none is available.
bool move_by_queue(const OpenFile& file, const PartRequest& request, int* error) {
  BorrowedQueue queue;
  if (!queue) return false;
  bool queue_failed = false;
  *error = ParallelTransfer(file, request, queue.slot()).run(&queue_failed);
  if (queue_failed) queue.discard();
  return !queue_failed;
}

PartRequest limited(PartRequest request) {
  if (!settings().merging) request.io_size_max = request.map.geometry().stripe_depth_bytes;
  // Smaller I/Os, so that those that have arrived are verified while the others are in flight.
  if (request.op == IoOp::kRead && request.parts.sums().verifies()) {
    request.io_size_max = std::min(request.io_size_max, kVerifiedIoMax);
  }
  return request;
}

int move(const OpenFile& file, const PartRequest& whole) {
  const PartRequest request = limited(whole);
  int error = 0;
  if (!within_one_unit(request) && move_by_queue(file, request, &error)) return error;
  RequestCutter cutter(request);
  return move_in_turn(file, cutter, request.direct);
}

bool is_aligned(uint64_t offset, const void* buffer, size_t count) {
  return (offset | reinterpret_cast<uintptr_t>(buffer) | count) % kBlockSize == 0;
}

AioReadQueue aio_read_queue;

class InlineEngine final : public IoEngine {
 public:
  InlineEngine(const OpenFile& file, bool asked_for) : file_(file), asked_for_(asked_for) {}
  int run(const PartRequest& request) override { return shim::move(file_, request); }

  // Without a hint on disks only: a device without seeks serves many reads at once, and these reads
  // need no copy.
  DeviceSet idle_devices() override {
    if (settings().backend == IoBackend::kThreads) return 0;
    const uint32_t count = file_.map.geometry().device_count;
    DeviceSet idle = asked_for_ ? all_devices(count) : 0;
    for (uint32_t d = 0; d < count && !asked_for_; ++d) {
      DeviceGate* const gate = file_.gates[d];
      const bool is_idle = gate != nullptr && gate->seeks() && gate->is_free();
      if (is_idle) idle |= DeviceSet{1} << d;
    }
    return idle != 0 && aio_read_queue.works() ? idle : 0;
  }
  bool submit(const PartRequest& whole, Completion* end) override {
    const PartRequest request = limited(whole);
    // Counted before the submission, because it may end in another thread at once.
    uint32_t ios[kDeviceCountMax] = {};
    uint64_t bytes[kDeviceCountMax] = {};
    RequestCutter cutter(request);
    for (LaneIo io; cutter.next(&io);) {
      ++ios[io.device_index];
      bytes[io.device_index] += io.expected_bytes;
    }
    if (!aio_read_queue.submit(request, end)) return false;
    for (uint32_t d = 0; d < file_.map.geometry().device_count; ++d) {
      if (ios[d] > 0) file_.counters[d]->count(IoOp::kRead, bytes[d], ios[d]);
    }
    return true;
  }
  bool poll() override { return aio_read_queue.poll(); }
  // The file may be closed when the read ends.
  bool verifies_submitted() const override { return false; }

 private:
  const OpenFile& file_;
  const bool asked_for_;
};

// A read within one stripe unit through the page cache is one call, as on a plain file. False: use
// the general path.
bool read_within_unit(const OpenFileRef& file, ByteRange range, void* buffer) {
  if (range.length_bytes == 0 || range.end() > file.size() || file->parts->sums().verifies()) {
    return false;
  }
  const Segment at = file->map.first_segment(range);
  if (at.length_bytes != range.length_bytes) return false;
  const ssize_t n =
      sys::pread(file->parts->buffered(at.device_index), buffer, at.length_bytes, at.part_offset);
  if (n != static_cast<ssize_t>(at.length_bytes)) return false;
  file->counters[at.device_index]->count(IoOp::kRead, at.length_bytes);
  return true;
}

// Reads into a buffer that ends in unmapped memory: as with the kernel, the bytes before that
// arrive.
ssize_t read_up_to_fault(const OpenFile& file, PartRequest request) {
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
    if (move_in_turn(file, cutter, request.direct) != 0) break;
    done += page.range.length_bytes;
    page.range.offset += page.range.length_bytes;
  }
  return done > 0 ? static_cast<ssize_t>(done) : -EFAULT;
}

}  // namespace

ssize_t read_striped(const OpenFileRef& file, uint64_t offset, void* buffer, size_t count_wanted) {
  const int saved_errno = errno;
  Piece piece{.range = {.offset = offset, .length_bytes = count_wanted}, .buffer = buffer};
  InlineEngine engine(*file, /*asked_for=*/false);
  std::optional<size_t> done;
  if (is_to_share(file, piece.range)) done = read_shared(file, piece.range, buffer, engine);
  if (done) {
    errno = saved_errno;
    return static_cast<ssize_t>(*done);
  }
  const SweepStep step(file, piece.range);
  if (file.direct()) {
    done = read_cached(file, piece.range, buffer, engine);
    errno = saved_errno;
    if (done) return static_cast<ssize_t>(*done);
  } else if (read_within_unit(file, piece.range, buffer)) {
    return static_cast<ssize_t>(count_wanted);
  }
  PartRequest request{.map = file->map,
                      .parts = *file->parts,
                      .size_bytes = file.size(),
                      .op = IoOp::kRead,
                      .direct = file.direct(),
                      .pieces = {&piece, 1}};
  const uint64_t readable = prepare_read(&request, &piece);
  const int error = readable == 0 ? 0 : move(*file, request);
  ssize_t result = error != 0 ? -error : static_cast<ssize_t>(readable);
  if (error == EFAULT && !request.direct) result = read_up_to_fault(*file, request);
  errno = saved_errno;
  return result;
}

void advise_striped(const OpenFileRef& file, ByteRange range, int advice) {
  const int saved_errno = errno;
  const uint32_t part_count = file.direct() ? 0 : file->map.geometry().device_count;
  for (uint32_t d = 0; d < part_count; ++d) {
    const ByteRange run = file->map.run(d, range);
    if (run.length_bytes == 0) continue;  // for the kernel 0 means up to the end
    (void)sys::fadvise(file->parts->buffered(d), run.offset, run.length_bytes, advice);
  }
  if (file.direct() && advice == POSIX_FADV_WILLNEED) {
    InlineEngine engine(*file, /*asked_for=*/true);
    will_need_cached(file, range, engine);
  }
  errno = saved_errno;
}

int overwrite_striped(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count) {
  const int saved_errno = errno;
  const Piece piece{.range = {.offset = offset, .length_bytes = count},
                    .buffer = const_cast<void*>(buffer)};
  const PartRequest request{.map = file->map,
                            .parts = *file->parts,
                            .size_bytes = offset + count,
                            .op = IoOp::kWrite,
                            .direct = file.direct() && is_aligned(offset, buffer, count),
                            .pieces = {&piece, 1}};
  const int error = move(*file, request);
  errno = saved_errno;
  return error;
}

ssize_t write_in_order(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count) {
  const int saved_errno = errno;
  bool direct = file.direct() && is_aligned(offset, buffer, count);
  size_t done = 0;
  int error = 0;
  while (done < count && error == 0) {
    const Segment at =
        file->map.first_segment({.offset = offset + done, .length_bytes = count - done});
    const int part =
        direct ? file->parts->direct(at.device_index) : file->parts->buffered(at.device_index);
    const ssize_t n =
        sys::pwrite(part, static_cast<const char*>(buffer) + done, at.length_bytes, at.part_offset);
    if (n > 0) {
      file->counters[at.device_index]->count(IoOp::kWrite, static_cast<uint64_t>(n));
      done += static_cast<size_t>(n);
      direct = direct && static_cast<uint64_t>(n) == at.length_bytes;
    } else if (n < 0 && errno == EINVAL && direct) {
      direct = false;  // the filesystem needs a larger alignment than 4096
    } else if (n == 0 || errno != EINTR) {
      error = n == 0 ? EIO : errno;
    }
  }
  errno = saved_errno;
  return done > 0 || error == 0 ? static_cast<ssize_t>(done) : -error;
}

}  // namespace graphlane::shim
