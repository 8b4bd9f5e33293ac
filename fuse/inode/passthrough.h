// Passthrough: one plain file's way past us. The kernel is told once which host's
// file it is (the backing id), and reads, writes and maps that by itself.
//
//   opens   0 ──first──► backed by an id, or by the page cache ──last gone──► 0
//
// The kernel wants all opens of a file at one time to be alike, and of one id; so
// the first open decides for those that come beside it.
//
// Needs Linux 6.9 and CAP_SYS_ADMIN; the host's filesystem may not be
// a stacked one (overlayfs, another FUSE that passes through).
//
// Threads: everything is safe from any thread.
#pragma once

#include <cstdint>

#include "iomgr/base/mutex.h"

namespace graphlane {

class Passthrough {
 public:
  // One open of the file, from before its answer to its release.
  class Open {
   public:
    // `connection_fd` is the /dev/fuse of the mount, -1 where it offers no
    // passthrough; `host_fd` is the host's file.
    Open(Passthrough& file, int connection_fd, int host_fd);
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

    int backing_id() const { return backing_id_; }  // 0: by the page cache

   private:
    Passthrough& file_;
    const int connection_fd_;
    const int backing_id_;
  };

  // Whether the kernel has it: it changes without our being told, by a map even of its times.
  bool is_open() const {
    const MutexLock lock(mu_);
    return backing_id_ != 0;
  }

 private:
  int join(int connection_fd, int host_fd);
  void leave(int connection_fd);

  mutable Mutex mu_;
  uint32_t open_count_ GUARDED_BY(mu_) = 0;
  int backing_id_ GUARDED_BY(mu_) = 0;
};

}  // namespace graphlane
