// IoEngine: moves bytes between memory and the parts of a striped file.
//
//   run(request)           blocks until the request has ended
//   submit(request, done)  begins a read; later, in any thread, done->on_done(error)
//   poll()                 waits until something that was submitted has ended
//
// There are two kinds. The mount and the tools have lanes with threads (lanes.h). The preload
// library does the I/O in the calling thread (inline_engine.h).
#pragma once

#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

// Is told once when a submitted request has ended, by any thread.
class Completion {
 public:
  virtual void on_done(int error) = 0;  // 0 or an errno

 protected:
  ~Completion() = default;
};

class IoEngine {
 public:
  // Blocks. 0 or an errno.
  virtual int run(const PartRequest& request) = 0;

  // The file's devices on which submit() does not wait, and that no other read uses now.
  virtual DeviceSet idle_devices() { return 0; }
  // Begins a read past the page cache. The memory must live until on_done(). False: not begun.
  virtual bool submit([[maybe_unused]] const PartRequest& request,
                      [[maybe_unused]] Completion* completion) {
    return false;
  }
  // Whether a submitted read has been compared with its checksums when `completion` is told.
  virtual bool verifies_submitted() const { return true; }
  // Waits until a submitted request has ended. False: nothing in flight needs poll().
  virtual bool poll() { return false; }

 protected:
  ~IoEngine() = default;
};

}  // namespace graphlane
