// StderrCatcher: captures stderr, of child processes too, for its lifetime.
//
// Threads: affects the whole process, so use it before other threads are started.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane::fuse {

class StderrCatcher {
 public:
  StderrCatcher()
      : kept_(::memfd_create("stderr", MFD_CLOEXEC)),
        original_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (kept_ && original_) ::dup2(kept_.get(), STDERR_FILENO);
  }
  ~StderrCatcher() { restore(); }
  StderrCatcher(const StderrCatcher&) = delete;
  StderrCatcher& operator=(const StderrCatcher&) = delete;

  // Ends the capture.
  std::string first_line() {
    restore();
    char text[1024];
    const Result<size_t> length =
        kept_ ? pread_full(kept_.get(), text, sizeof text, 0) : Result<size_t>(Errno{EBADF});
    const std::string all(text, length ? *length : 0);
    return all.substr(0, all.find('\n'));
  }

 private:
  void restore() {
    if (kept_ && original_) ::dup2(original_.get(), STDERR_FILENO);
    original_.reset();
  }

  Fd kept_;
  Fd original_;
};

}  // namespace graphlane::fuse
