#include "iomgr/read/aio_read_queue.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "iomgr/base/futex.h"
#include "iomgr/base/setup_cookie.h"
#include "iomgr/base/slot_pool.h"

namespace graphlane {
namespace {

// Nothing should need it: an I/O that is under way ends by an event.
constexpr timespec kEventPatience{.tv_sec = 0, .tv_nsec = 100'000'000};

}  // namespace

void AioReadQueue::open() {
  State expected = State::kNew;
  if (!state_.compare_exchange_strong(expected, State::kOpening)) return;  // another thread
  const bool opened = ::syscall(SYS_io_setup, kIoCount, &context_, kSetupCookie) == 0;
  // Release: the context is there.
  state_.store(opened ? State::kOpen : State::kRefused, std::memory_order_release);
}

bool AioReadQueue::works() {
  if (state_.load(std::memory_order_relaxed) == State::kNew) open();
  return state_.load(std::memory_order_acquire) == State::kOpen;
}

bool AioReadQueue::submit(const PartRequest& request, Completion* end) {
  if (!works()) return false;
  Request* const pending = take_free_slot(requests_);
  if (pending == nullptr) return false;
  Io* cut[kIoCount];
  uint32_t count = 0;
  RequestCutter cutter(request);
  Io* io = nullptr;
  while ((io = take_free_slot(ios_)) != nullptr && cutter.next(&io->io)) {
    io->request = pending;
    cut[count++] = io;
  }
  const bool whole = io != nullptr;  // the one that nothing was left for
  if (whole) free_slot(*io);
  if (!whole || count == 0) {
    for (uint32_t i = 0; i < count; ++i) free_slot(*cut[i]);
    free_slot(*pending);
    return false;
  }
  pending->end = end;
  pending->error.store(0, std::memory_order_relaxed);
  pending->pending.store(count, std::memory_order_relaxed);
  // Before any of them: who has to wait for one must know of it.
  under_way_.fetch_add(count, std::memory_order_release);
  for (uint32_t i = 0; i < count; ++i) submit(*cut[i]);
  return true;
}

void AioReadQueue::submit(Io& io) {
  io_prep_preadv(&io.block, io.io.fd, io.io.iov, static_cast<int>(io.io.iov_count),
                 static_cast<long long>(io.io.part_offset));
  io.block.data = &io;
  iocb* const block = &io.block;
  io.begun.store(true, std::memory_order_release);
  const int saved_errno = errno;
  if (::syscall(SYS_io_submit, context_, 1L, &block) != 1) end(io, -EIO);
  errno = saved_errno;
}

void AioReadQueue::end(Io& io, int64_t result) {
  Request& request = *io.request;
  const bool whole = result >= 0 && static_cast<uint64_t>(result) >= io.io.expected_bytes;
  if (!whole) request.error.store(EIO, std::memory_order_relaxed);
  free_slot(io);
  // Acquire, release: whoever ends the last one sees the others' errors.
  if (request.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    Completion* const end = request.end;
    const int error = request.error.load(std::memory_order_relaxed);
    free_slot(request);
    end->on_done(error);
  }
  // After the end was told: who finds nothing under way need not wait for it.
  under_way_.fetch_sub(1, std::memory_order_release);
}

void AioReadQueue::reap() {
  io_event events[kIoCount];
  timespec patience = kEventPatience;
  const int saved_errno = errno;
  const long count = ::syscall(SYS_io_getevents, context_, 1L, long{kIoCount}, events, &patience);
  errno = saved_errno;
  for (long i = 0; i < count; ++i) {
    Io& io = *static_cast<Io*>(events[i].data);
    (void)io.begun.load(std::memory_order_acquire);
    end(io, static_cast<int64_t>(events[i].res));
  }
}

bool AioReadQueue::poll() {
  // Before the look at who reaps: what is reaped after that has moved on from this.
  const uint32_t reaped = reaped_.load(std::memory_order_acquire);
  if (under_way_.load(std::memory_order_acquire) == 0) return false;
  // Acquire: sees what the last one ended.
  if (reaping_.exchange(true, std::memory_order_acquire)) {
    futex_wait(reaped_, reaped);
    return true;
  }
  // Only this thread ends what has been submitted, so what is still under way will come.
  const bool any = under_way_.load(std::memory_order_acquire) > 0;
  if (any) reap();
  reaping_.store(false, std::memory_order_release);
  reaped_.fetch_add(1, std::memory_order_release);
  futex_wake(reaped_);
  return any;
}

}  // namespace graphlane
