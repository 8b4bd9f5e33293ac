// Passthrough: lets the kernel read, write and map one plain file itself. The kernel is told once
// which file of the host it is (the backing id).
//
//   opens   0 ──first──► backed by an id, or by the page cache ──last close──► 0
//
// The kernel demands that all concurrent opens of a file are alike and have one id. So the first
// open decides for those that join it.
//
// Needs Linux 6.9 and CAP_SYS_ADMIN; the host's filesystem may not be
// a stacked one (overlayfs, another FUSE that passes through).
//
// Threads: everything is safe from any thread.
#pragma once

#include <cstdint>

#include "iomgr/base/mutex.h"

namespace graphlane::fuse {

class Passthrough {
 public:
  // One open of the file, from before its reply to its release.
  class Open {
   public:
    // `connection_fd` is the mount's /dev/fuse, or -1 without passthrough; `host_fd` is the host's
    // file.
    Open(Passthrough& file, int connection_fd, int host_fd);
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

    int backing_id() const { return backing_id_; }  // 0: through the page cache

   private:
    Passthrough& file_;
    const int connection_fd_;
    const int backing_id_;
  };

  // Whether the kernel passes the file through. Its bytes, size and times then change unnoticed.
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

}  // namespace graphlane::fuse
