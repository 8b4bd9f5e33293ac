// AioReadQueue: reads that any thread starts, and that any thread can complete.
//
//   submit(request, end) ──► an I/O to every device ──► returns
//                                   :
//   poll()               ◄── completions ──► end->on_done(error)
//
// It needs no thread, so the preload library can prefetch in a foreign process: the devices
// work while the program computes, and its next read takes the completed I/Os.
//
// It uses libaio. An io_uring completes in the thread that submitted: that interrupts the
// thread's epoll_wait(2), and its exit cancels the I/O.
//
// A short read is a failure, because the file may be closed before a second attempt.
//
// Threads: everything is safe from any thread. Not across fork().
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <linux/aio_abi.h>

#include <atomic>
#include <cstdint>

#include "iomgr/io/engine.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

class AioReadQueue {
 public:
  // False: the kernel or a sandbox does not allow libaio.
  bool works();

  // Starts a direct read. False: not started, as too many are in flight.
  bool submit(const PartRequest& request, Completion* end);

  // Waits for a completion. False: nothing is in flight.
  bool poll();

 private:
  static constexpr uint32_t kIoCount = 64;
  static constexpr uint32_t kRequestCount = 16;

  struct Request {
    std::atomic<bool> taken{false};
    std::atomic<uint32_t> pending{0};  // I/Os
    std::atomic<int> error{0};
    Completion* end = nullptr;
  };
  struct Io {
    std::atomic<bool> taken{false};
    std::atomic<bool> begun{false};  // orders the fields below; tsan does not see the kernel do so
    Request* request = nullptr;
    iocb block;
    LaneIo io;
  };

  void open();
  void submit(Io& io);
  void end(Io& io, int64_t result);
  void reap();

  enum class State : uint8_t { kNew, kOpening, kOpen, kRefused };
  std::atomic<State> state_{State::kNew};
  aio_context_t context_ = 0;
  std::atomic<uint32_t> under_way_{0};  // I/Os
  std::atomic<bool> reaping_{false};
  std::atomic<uint32_t> reaped_{0};  // counts calls of reap(): the other threads wait for it
  Request requests_[kRequestCount];
  Io ios_[kIoCount];
};

}  // namespace graphlane
