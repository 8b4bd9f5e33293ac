// IoQueue: I/Os in flight, whoever drives them: a lane's thread, or inside a
// preloaded program the calling thread itself.
//
//   UringQueue   io_uring; the default
//   AioQueue     libaio, where a sandbox forbids io_uring
//   SyncQueue    preadv and pwritev, done within submit(); what always works
//
// A completion is the kernel's own: bytes >= 0, or -errno. Short transfers are
// the caller's business (read_striped(), Lane).
//
// Threads: one owner at a time submits and reaps.
// Invariant: in_flight() <= capacity(); submit() takes at most the difference.
// No exceptions; allocation only in the factory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "iomgr/base/result.h"
#include "iomgr/lane_io.h"

namespace graphlane {

struct IoCompletion {
  LaneIo* io = nullptr;
  int64_t result = 0;
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;

  // Queues the first of `ios`, as many as there is room for; that number.
  virtual Result<uint32_t> submit(std::span<LaneIo* const> ios) = 0;

  // Waits for at least `count_min` completions (never more than are in
  // flight) and takes what has completed, at most completions.size().
  virtual Result<uint32_t> reap(std::span<IoCompletion> completions, uint32_t count_min) = 0;

  virtual uint32_t capacity() const = 0;
  virtual uint32_t in_flight() const = 0;
};

enum class IoBackend { kAuto, kUring, kAio, kThreads };

// "auto", "io_uring", "libaio", "threads".
std::string_view name_of(IoBackend backend);

// Sizes of the objects, so that a caller can give the memory.
inline constexpr uint32_t kQueueDepthMax = 64;

// Makes a queue in `storage` (kIoQueueSize bytes, aligned to max_align_t); the
// caller ends it with ->~IoQueue(). EPERM, ENOSYS, EAGAIN, ENOMEM …: the kernel
// or the sandbox does not allow that one. kAuto tries them in order.
inline constexpr size_t kIoQueueSize = 8192;
Result<IoQueue*> make_io_queue(IoBackend backend, uint32_t depth, void* storage,
                               IoBackend* chosen = nullptr);

}  // namespace graphlane
