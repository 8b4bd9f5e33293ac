#include "iomgr/io/inline_queues.h"

#include <sys/eventfd.h>

#include <new>

#include "iomgr/base/fd.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

static_assert(static_cast<int>(IoBackend::kAuto) == 0, "all of it is zero at first");

// -1: then a request polls its gates less eagerly.
int make_wake_fd(const InlineProcess& process) {
  Fd made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made) return -1;
  Fd high(sys::fcntl(made.get(), F_DUPFD_CLOEXEC, process.fd_floor()));
  const int kept = (high ? high : made).release();
  process.protect(kept);
  return kept;
}

}  // namespace

// Makes the slot's queue unless it has one of this process.
bool InlineQueues::is_ready(Slot& slot, uint32_t epoch, const InlineProcess& process,
                            IoBackend backend) {
  if (slot.queue != nullptr && slot.epoch == epoch) return true;
  if (slot.queue != nullptr) {
    slot.queue->~IoQueue();  // the parent's: unmaps and closes this process's copies
    slot.queue = nullptr;
  }
  if (slot.refused) return false;
  IoBackend chosen = IoBackend::kThreads;
  const Result<IoQueue*> queue =
      make_io_queue(backend, kRequestDepth, &slot.storage, &chosen, process.fd_floor());
  // A synchronous queue gains nothing over none.
  if (!queue || chosen == IoBackend::kThreads) {
    slot.refused = true;
    backend_chosen_.store(IoBackend::kThreads, std::memory_order_relaxed);
    return false;
  }
  process.protect((*queue)->internal_fd());
  new (slot.memory) Memory();
  slot.queue = *queue;
  slot.wake_fd = make_wake_fd(process);
  slot.epoch = epoch;
  backend_chosen_.store(chosen, std::memory_order_relaxed);
  return true;
}

InlineQueues::Slot* InlineQueues::borrow(const InlineProcess& process, IoBackend backend) {
  if (backend == IoBackend::kThreads || !is_first(process)) return nullptr;
  const uint32_t epoch = process.epoch();
  for (Slot& slot : slots_) {
    uint32_t holder = slot.holder.load(std::memory_order_relaxed);
    if (holder == epoch ||
        !slot.holder.compare_exchange_strong(holder, epoch, std::memory_order_acquire)) {
      continue;
    }
    if (is_ready(slot, epoch, process, backend)) return &slot;
    slot.holder.store(0, std::memory_order_release);
    return nullptr;
  }
  return nullptr;
}

bool InlineQueues::is_first(const InlineProcess& process) {
  const uint32_t epoch = process.epoch();
  uint32_t first = 0;
  return epoch != 0 &&
         (first_epoch_.compare_exchange_strong(first, epoch, std::memory_order_relaxed) ||
          first == epoch);
}

InlineQueues::Loan::Loan(InlineQueues& queues, const InlineProcess& process, IoBackend backend)
    : slot_(queues.borrow(process, backend)) {}

InlineQueues::Loan::~Loan() {
  if (slot_ != nullptr) slot_->holder.store(0, std::memory_order_release);
}

void InlineQueues::Loan::discard() {
  slot_->queue->~IoQueue();
  slot_->queue = nullptr;
}

AioReadQueue* InlineQueues::prefetches() {
  AioReadQueue* const made = prefetches_.load(std::memory_order_acquire);
  if (made != nullptr || prefetches_begun_.exchange(true, std::memory_order_relaxed)) return made;
  auto* const fresh = new (prefetch_storage_) AioReadQueue();
  prefetches_.store(fresh, std::memory_order_release);
  return fresh;
}

const char* InlineQueues::backend_in_use() const {
  const IoBackend used = backend_chosen_.load(std::memory_order_relaxed);
  return used == IoBackend::kUring || used == IoBackend::kAio ? name_of(used) : "preadv";
}

}  // namespace graphlane
