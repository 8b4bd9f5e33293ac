// IoQueue: I/Os in flight. A lane's thread drives it, or in a preloaded program the calling
// thread.
//
//   UringQueue   io_uring; the default
//   AioQueue     libaio, where a sandbox forbids io_uring
//   SyncQueue    preadv and pwritev, done within push(): always works
//
// A completion is the kernel's own: bytes >= 0, or -errno. Short transfers are
// for settle() (lane_io.h).
//
// Threads: one owner at a time submits and reaps.
// Invariant: in_flight() <= capacity().
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "iomgr/base/result.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

struct IoCompletion {
  LaneIo* io = nullptr;
  int64_t result = 0;
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;

  // Starts one I/O; the caller keeps it alive until its completion.
  // Precondition: in_flight() < capacity().
  virtual void push(LaneIo* io) = 0;

  // Submits what was pushed, waits for at least one completion if any is in flight, and takes
  // at most completions.size(). An error is the queue's own (e.g. a program closed the ring's
  // descriptor): the I/Os in flight are lost.
  virtual Result<uint32_t> reap(std::span<IoCompletion> completions) = 0;

  // Makes the next reap() return, maybe without a completion, when the eventfd is written. reap()
  // empties it. False: this queue cannot.
  virtual bool wake_by([[maybe_unused]] int event_fd) { return false; }

  virtual uint32_t capacity() const = 0;
  virtual uint32_t in_flight() const = 0;

  // The descriptor that the queue holds open, or -1.
  virtual int internal_fd() const { return -1; }
};

enum class IoBackend { kAuto, kUring, kAio, kThreads };

// "auto", "io_uring", "libaio", "threads"; parse gives EINVAL for another name.
const char* name_of(IoBackend backend);
Result<IoBackend> parse_io_backend(const char* name);

inline constexpr uint32_t kQueueDepthMax = 64;

// Memory for one queue of any kind.
struct alignas(std::max_align_t) IoQueueStorage {
  unsigned char bytes[8192];
};

// Makes a queue in `storage`; the caller ends it with ->~IoQueue(). kAuto takes the first that
// works; `chosen` gets that backend. Errors are those of the kernel or sandbox: EPERM, ENOSYS,
// EAGAIN, ENOMEM … The ring's descriptor gets a number from `fd_floor` on.
Result<IoQueue*> make_io_queue(IoBackend backend, uint32_t depth, IoQueueStorage* storage,
                               IoBackend* chosen, int fd_floor = 0);

// make_io_queue(), or a test's function that fails and delays.
using IoQueueMaker = Result<IoQueue*> (*)(IoBackend backend, uint32_t depth,
                                          IoQueueStorage* storage, IoBackend* chosen, int fd_floor);

}  // namespace graphlane
