#include "iomgr/io/io_queue.h"

#include <cstring>
#include <new>

#include "iomgr/io/aio_queue.h"
#include "iomgr/io/sync_queue.h"
#include "iomgr/io/uring_queue.h"

namespace graphlane {
namespace {

static_assert(sizeof(UringQueue) <= sizeof(IoQueueStorage));
static_assert(sizeof(AioQueue) <= sizeof(IoQueueStorage));
static_assert(sizeof(SyncQueue) <= sizeof(IoQueueStorage));

constexpr struct {
  IoBackend backend;
  const char* name;
} kNames[] = {
    {IoBackend::kAuto, "auto"},
    {IoBackend::kUring, "io_uring"},
    {IoBackend::kAio, "libaio"},
    {IoBackend::kThreads, "threads"},
};

// Keeps the queue if it opens.
template <class Queue, class... Args>
Result<IoQueue*> open_queue(IoQueueStorage* storage, Args... args) {
  auto* queue = new (storage->bytes) Queue();
  const Result<void> opened = queue->open(args...);
  if (opened) return static_cast<IoQueue*>(queue);
  queue->~Queue();
  return opened.error();
}

}  // namespace

const char* name_of(IoBackend backend) {
  for (const auto& entry : kNames) {
    if (entry.backend == backend) return entry.name;
  }
  return "unknown";
}

Result<IoBackend> parse_io_backend(const char* name) {
  for (const auto& entry : kNames) {
    if (std::strcmp(entry.name, name) == 0) return entry.backend;
  }
  return Errno{EINVAL};
}

Result<IoQueue*> make_io_queue(IoBackend backend, uint32_t depth, IoQueueStorage* storage,
                               IoBackend* chosen, int fd_floor) {
  const bool any = backend == IoBackend::kAuto;
  if (any || backend == IoBackend::kUring) {
    *chosen = IoBackend::kUring;
    const Result<IoQueue*> queue = open_queue<UringQueue>(storage, depth, fd_floor);
    if (queue || !any) return queue;
  }
  if (any || backend == IoBackend::kAio) {
    *chosen = IoBackend::kAio;
    const Result<IoQueue*> queue = open_queue<AioQueue>(storage, depth);
    if (queue || !any) return queue;
  }
  *chosen = IoBackend::kThreads;
  return static_cast<IoQueue*>(new (storage->bytes) SyncQueue());
}

}  // namespace graphlane
