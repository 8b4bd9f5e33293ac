#include "shim/read/queue_pool.h"

#include <sys/eventfd.h>

#include "shim/base/process.h"
#include "shim/base/settings.h"
#include "shim/fd/fd_table.h"
#include "shim/fd/open_file.h"

namespace graphlane::shim {
namespace {

// With more concurrent requests than this, the others are served without a queue.
constexpr uint32_t kQueueCount = 16;

QueueSlot slots[kQueueCount];
std::atomic<IoBackend> backend_chosen{IoBackend::kAuto};

// The epoch of the process that read first; a forked child has another one.
std::atomic<uint32_t> first_epoch{0};

// -1: then a request polls its gates less eagerly.
int make_wake_fd() { return keep_internal(Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

// Makes the slot's queue unless it has one of this process.
bool is_ready(QueueSlot& slot, uint32_t epoch) {
  if (slot.queue != nullptr && slot.epoch == epoch) return true;
  if (slot.queue != nullptr) {
    slot.queue->~IoQueue();  // the parent's: unmaps and closes this process's copies
    slot.queue = nullptr;
  }
  if (slot.refused) return false;
  IoBackend chosen = IoBackend::kThreads;
  const Result<IoQueue*> queue =
      make_io_queue(settings().backend, kRequestDepth, &slot.storage, &chosen, internal_fd_floor());
  // A synchronous queue gains nothing over none.
  if (!queue || chosen == IoBackend::kThreads) {
    slot.refused = true;
    backend_chosen.store(IoBackend::kThreads, std::memory_order_relaxed);
    return false;
  }
  set_entry((*queue)->internal_fd(), FdEntry::internal());
  slot.queue = *queue;
  slot.wake_fd = make_wake_fd();
  slot.epoch = epoch;
  backend_chosen.store(chosen, std::memory_order_relaxed);
  return true;
}

QueueSlot* borrow() {
  if (settings().backend == IoBackend::kThreads) return nullptr;
  if (!is_first_process()) return nullptr;
  const uint32_t epoch = process_epoch();
  for (QueueSlot& slot : slots) {
    uint32_t holder = slot.holder.load(std::memory_order_relaxed);
    if (holder == epoch ||
        !slot.holder.compare_exchange_strong(holder, epoch, std::memory_order_acquire)) {
      continue;
    }
    if (is_ready(slot, epoch)) return &slot;
    slot.holder.store(0, std::memory_order_release);
    return nullptr;
  }
  return nullptr;
}

}  // namespace

bool is_first_process() {
  const uint32_t epoch = process_epoch();
  uint32_t first = 0;
  return epoch != 0 &&
         (first_epoch.compare_exchange_strong(first, epoch, std::memory_order_relaxed) ||
          first == epoch);
}

BorrowedQueue::BorrowedQueue() : slot_(borrow()) {}

BorrowedQueue::~BorrowedQueue() {
  if (slot_ != nullptr) slot_->holder.store(0, std::memory_order_release);
}

void BorrowedQueue::discard() {
  slot_->queue->~IoQueue();
  slot_->queue = nullptr;
}

const char* backend_in_use() {
  const IoBackend used = backend_chosen.load(std::memory_order_relaxed);
  return used == IoBackend::kUring || used == IoBackend::kAio ? name_of(used) : "preadv";
}

}  // namespace graphlane::shim
