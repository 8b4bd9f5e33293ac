#include "iomgr/io/aio_read_queue.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "iomgr/base/futex.h"
#include "iomgr/base/setup_cookie.h"
#include "iomgr/base/slot_pool.h"
#include "iomgr/io/aio_block.h"

namespace graphlane {
namespace {

// A safeguard only: every I/O in flight ends with an event.
constexpr timespec kEventPatience{.tv_sec = 0, .tv_nsec = 100'000'000};

}  // namespace

void AioReadQueue::open() {
  State expected = State::kNew;
  if (!state_.compare_exchange_strong(expected, State::kOpening)) return;  // another thread
  const bool opened = ::syscall(SYS_io_setup, kIoCount, &context_, kSetupCookie) == 0;
  // Release: publishes the context.
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
  const bool whole = io != nullptr;  // the spare slot
  if (whole) free_slot(*io);
  if (!whole || count == 0) {
    for (uint32_t i = 0; i < count; ++i) free_slot(*cut[i]);
    free_slot(*pending);
    return false;
  }
  pending->end = end;
  pending->error.store(0, std::memory_order_relaxed);
  pending->pending.store(count, std::memory_order_relaxed);
  // Must precede the submissions: a thread that waits for one must see it in flight.
  under_way_.fetch_add(count, std::memory_order_release);
  for (uint32_t i = 0; i < count; ++i) submit(*cut[i]);
  return true;
}

void AioReadQueue::submit(Io& io) {
  io.block = aio_block_of(io.io, &io);
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
  // Acquire, release: the thread that ends the last I/O sees the errors of the others.
  if (request.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    Completion* const end = request.end;
    const int error = request.error.load(std::memory_order_relaxed);
    free_slot(request);
    end->on_done(error);
  }
  // Must follow on_done(): a thread that sees nothing in flight relies on its result.
  under_way_.fetch_sub(1, std::memory_order_release);
}

void AioReadQueue::reap() {
  io_event events[kIoCount];
  timespec patience = kEventPatience;
  const int saved_errno = errno;
  const long count = ::syscall(SYS_io_getevents, context_, 1L, long{kIoCount}, events, &patience);
  errno = saved_errno;
  for (long i = 0; i < count; ++i) {
    Io& io = *reinterpret_cast<Io*>(events[i].data);
    (void)io.begun.load(std::memory_order_acquire);
    end(io, static_cast<int64_t>(events[i].res));
  }
}

bool AioReadQueue::poll() {
  // Must precede the exchange: a reap that ends after the exchange changes `reaped_`.
  const uint32_t reaped = reaped_.load(std::memory_order_acquire);
  if (under_way_.load(std::memory_order_acquire) == 0) return false;
  // Acquire: sees the effects of the previous reap.
  if (reaping_.exchange(true, std::memory_order_acquire)) {
    futex_wait(reaped_, reaped);
    return true;
  }
  // Only this thread reaps now, so an I/O in flight will arrive here.
  const bool any = under_way_.load(std::memory_order_acquire) > 0;
  if (any) reap();
  reaping_.store(false, std::memory_order_release);
  reaped_.fetch_add(1, std::memory_order_release);
  futex_wake(reaped_);
  return any;
}

}  // namespace graphlane
