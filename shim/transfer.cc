#include "shim/transfer.h"

#include <atomic>
#include <cerrno>

#include "iomgr/base/sys.h"
#include "iomgr/io_queue.h"
#include "iomgr/lane_io.h"
#include "shim/held_signals.h"
#include "shim/process.h"
#include "shim/report.h"
#include "shim/settings.h"

namespace graphlane {
namespace {

// More reads at once than this are served without a queue.
constexpr uint32_t kQueueCount = 16;
// I/Os in flight of one read: 16 of up to 24 MiB each.
constexpr uint32_t kDepth = 16;

struct QueueSlot {
  // The process_epoch() of the process whose thread has it, or 0. A slot that a
  // thread of our parent had is free: that thread does not exist here.
  std::atomic<uint32_t> holder{0};
  // Owned by the holder.
  IoQueue* queue = nullptr;
  uint32_t epoch = 0;  // of the process that made it
  bool refused = false;
  IoQueueStorage storage;
  LaneIo ios[kDepth];
};

QueueSlot slots[kQueueCount];
std::atomic<IoBackend> backend{IoBackend::kAuto};

// Makes the slot's queue if it has none of this process.
bool ready(QueueSlot& slot, uint32_t epoch) {
  if (slot.queue != nullptr && slot.epoch == epoch) return true;
  if (slot.queue != nullptr) {
    slot.queue->~IoQueue();  // the parent's: unmaps and closes our copies of it
    slot.queue = nullptr;
  }
  if (slot.refused) return false;
  IoBackend chosen = IoBackend::kThreads;
  const Result<IoQueue*> queue =
      make_io_queue(settings().backend, kDepth, &slot.storage, &chosen, internal_fd_floor());
  // A synchronous queue is no better than none.
  if (!queue || chosen == IoBackend::kThreads) {
    slot.refused = true;
    backend.store(IoBackend::kThreads, std::memory_order_relaxed);
    return false;
  }
  const int fd = (*queue)->internal_fd();
  if (FdTable::covers(fd)) fd_table.exchange(fd, FdEntry::internal());
  slot.queue = *queue;
  slot.epoch = epoch;
  backend.store(chosen, std::memory_order_relaxed);
  return true;
}

// Of the process that read first; a child by fork has another one.
std::atomic<uint32_t> first_epoch{0};

// A queue for the time of one read; null when there is none. A child by fork
// reads device after device: with 32 threads at work when it was forked, a ring
// of its own has been seen to wait for ever (tests/shim/test_storm.py), and why
// is not known yet.
QueueSlot* borrow_queue() {
  if (settings().backend == IoBackend::kThreads) return nullptr;
  const uint32_t epoch = process_epoch();
  if (epoch == 0) return nullptr;
  uint32_t first = 0;
  if (!first_epoch.compare_exchange_strong(first, epoch, std::memory_order_relaxed) &&
      first != epoch) {
    return nullptr;
  }
  for (QueueSlot& slot : slots) {
    uint32_t holder = slot.holder.load(std::memory_order_relaxed);
    if (holder == epoch ||
        !slot.holder.compare_exchange_strong(holder, epoch, std::memory_order_acquire)) {
      continue;
    }
    if (ready(slot, epoch)) return &slot;
    slot.holder.store(0, std::memory_order_release);
    return nullptr;
  }
  return nullptr;
}

void count(const OpenFile& file, const LaneIo& io) {
  file.counters[io.device_index]->count(io.op, io.moved_bytes);
}

// Device after device. 0 or an errno.
int move_in_turn(const OpenFile& file, RequestCutter& cutter) {
  LaneIo io;
  while (cutter.next(&io)) {
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

// All devices at once. 0 or an errno; EBADF and the like of the queue itself
// are in *queue_failed.
int move_at_once(const OpenFile& file, RequestCutter& cutter, QueueSlot& slot,
                 bool* queue_failed) {
  IoQueue& queue = *slot.queue;
  LaneIo* free_ios[kDepth];
  uint32_t free_count = kDepth;
  for (uint32_t i = 0; i < kDepth; ++i) free_ios[i] = &slot.ios[kDepth - 1 - i];
  bool more = true;
  int first_error = 0;
  while (true) {
    while (more && first_error == 0 && free_count > 0) {
      LaneIo* io = free_ios[free_count - 1];
      more = cutter.next(io);
      if (!more) break;
      --free_count;
      queue.push(io);
    }
    if (queue.in_flight() == 0) return first_error;
    IoCompletion completions[kDepth];
    const Result<uint32_t> reaped = queue.reap(completions);
    if (!reaped) {
      *queue_failed = true;
      return reaped.error().code;
    }
    for (uint32_t i = 0; i < *reaped; ++i) {
      LaneIo* io = completions[i].io;
      int error = 0;
      const IoStep step = settle(io, completions[i].result, &error);
      if (step == IoStep::kAgain && first_error == 0) {
        queue.push(io);
        continue;
      }
      if (step == IoStep::kDone) count(file, *io);
      if (step == IoStep::kFailed && first_error == 0) first_error = error;
      free_ios[free_count++] = io;
    }
  }
}

bool within_one_unit(const PartRequest& request) {
  const uint64_t depth = request.map.geometry().stripe_depth_bytes;
  return request.range.offset / depth == (request.range.end() - 1) / depth;
}

// By a queue, if one is to be had; false: it must be done without.
bool move_by_queue(const OpenFile& file, const PartRequest& request, int* error) {
  const HeldSignals signals;
  QueueSlot* slot = borrow_queue();
  if (slot == nullptr) return false;
  RequestCutter cutter(request);
  bool queue_failed = false;
  *error = move_at_once(file, cutter, *slot, &queue_failed);
  if (queue_failed) {  // the program closed the ring under us: make another next time
    slot->queue->~IoQueue();
    slot->queue = nullptr;
  }
  slot->holder.store(0, std::memory_order_release);
  return !queue_failed;
}

int move(const OpenFile& file, const PartRequest& request) {
  int error = 0;
  if (!within_one_unit(request) && move_by_queue(file, request, &error)) return error;
  RequestCutter cutter(request);
  return move_in_turn(file, cutter);
}

bool is_aligned(uint64_t offset, const void* buffer, size_t count) {
  return (offset | reinterpret_cast<uintptr_t>(buffer) | count) % kBlockSize == 0;
}

// A buffer that ends in memory which is not there: as from the kernel, what fits
// in front of it arrives.
ssize_t read_up_to_fault(const OpenFile& file, PartRequest request) {
  constexpr uint64_t kPage = 4096;
  auto* const begin = static_cast<char*>(request.buffer);
  const uint64_t end = request.range.end();
  uint64_t done = 0;
  while (request.range.offset < end) {
    const uint64_t in_page = kPage - reinterpret_cast<uintptr_t>(begin + done) % kPage;
    const uint64_t left = end - request.range.offset;
    request.range.length_bytes = in_page < left ? in_page : left;
    request.buffer = begin + done;
    RequestCutter cutter(request);
    if (move_in_turn(file, cutter) != 0) break;
    done += request.range.length_bytes;
    request.range.offset += request.range.length_bytes;
  }
  return done > 0 ? static_cast<ssize_t>(done) : -EFAULT;
}

}  // namespace

ssize_t read_striped(const OpenFileRef& file, uint64_t offset, void* buffer, size_t count_wanted) {
  const int saved_errno = errno;
  PartRequest request{.map = file->map,
                      .parts = *file->parts,
                      .size_bytes = file.size(),
                      .op = IoOp::kRead,
                      .direct = file.direct(),
                      .range = {.offset = offset, .length_bytes = count_wanted},
                      .buffer = buffer};
  const uint64_t readable = prepare_read(&request);
  const int error = readable == 0 ? 0 : move(*file, request);
  ssize_t result = error != 0 ? -error : static_cast<ssize_t>(readable);
  if (error == EFAULT && !request.direct) result = read_up_to_fault(*file, request);
  errno = saved_errno;
  return result;
}

int overwrite_striped(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count) {
  const int saved_errno = errno;
  const PartRequest request{.map = file->map,
                            .parts = *file->parts,
                            .size_bytes = offset + count,
                            .op = IoOp::kWrite,
                            .direct = file.direct() && is_aligned(offset, buffer, count),
                            .range = {.offset = offset, .length_bytes = count},
                            .buffer = const_cast<void*>(buffer)};
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
    const int part = direct ? file->parts->direct(at.device_index)
                            : file->parts->buffered(at.device_index);
    const ssize_t n = sys::pwrite(part, static_cast<const char*>(buffer) + done, at.length_bytes,
                                  at.part_offset);
    if (n > 0) {
      file->counters[at.device_index]->count(IoOp::kWrite, static_cast<uint64_t>(n));
      done += static_cast<size_t>(n);
      direct = direct && static_cast<uint64_t>(n) == at.length_bytes;
    } else if (n < 0 && errno == EINVAL && direct) {
      direct = false;  // the filesystem wants another alignment than 4096
    } else if (n == 0 || errno != EINTR) {
      error = n == 0 ? EIO : errno;
    }
  }
  errno = saved_errno;
  return done > 0 || error == 0 ? static_cast<ssize_t>(done) : -error;
}

const char* backend_in_use() {
  const IoBackend used = backend.load(std::memory_order_relaxed);
  return used == IoBackend::kUring || used == IoBackend::kAio ? name_of(used) : "preadv";
}

}  // namespace graphlane
