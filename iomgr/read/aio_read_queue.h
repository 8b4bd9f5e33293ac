// AioReadQueue: reads that are begun now, and ended by whoever needs one of them.
//
//   start(request, end) ──► an I/O to every device ──► returns
//                                   :
//   poll()              ◄── what has come ──► end->on_done(error)
//
// It needs no thread, so the preload library can read ahead in a stranger's process:
// the devices work while the program computes, and its next read takes what has come.
//
// By libaio: what an io_uring completes, it completes in the thread that submitted it,
// whose epoll_wait(2) it would interrupt, and with whose end it is cancelled.
//
// What does not come whole in one go has failed, as its file may be closed by then.
//
// Threads: everything is safe from any thread. Not across fork().
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <libaio.h>

#include <atomic>
#include <cstdint>

#include "iomgr/io/engine.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

class AioReadQueue {
 public:
  // False: the kernel, or a sandbox, refuses it.
  bool works();

  // Of a read that is direct. False: not begun, as too much is under way already.
  bool submit(const PartRequest& request, Completion* end);

  // Waits until something has ended. False: nothing is under way.
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
    std::atomic<bool> begun{false};  // orders what follows; the kernel does too, unseen by tsan
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
  io_context_t context_ = nullptr;
  std::atomic<uint32_t> under_way_{0};  // I/Os
  std::atomic<bool> reaping_{false};
  std::atomic<uint32_t> reaped_{0};  // how often: what the others wait for
  Request requests_[kRequestCount];
  Io ios_[kIoCount];
};

}  // namespace graphlane
