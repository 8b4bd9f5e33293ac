// OutFile: a file of a graph that is being built, written in any order.
//
// Threads: write() from any thread.
#pragma once

#include <fcntl.h>

#include <string>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane::graphfmt {

struct OutFile {
  Fd fd;
  std::string path;

  static Outcome<OutFile> create(const std::string& path) {
    OutFile file{Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)), path};
    if (!file.fd) return os_error(errno, path, "cannot create");
    return file;
  }

  Outcome<void> write(const void* data, size_t length, uint64_t offset) const {
    auto done = pwrite_full(fd.get(), data, length, offset);
    if (!done) return os_error(done.error().code, path, "cannot write");
    return {};
  }

  // Servers, for one, tell only then what became of what was written.
  Outcome<void> close() {
    if (::close(fd.release()) == 0) return {};
    return os_error(errno, path, "cannot write");
  }

  // Claims the space, so that a full disk shows at once and the file lies in one
  // piece although it is written in any order. Filesystems may not offer it.
  Outcome<void> claim(uint64_t size_bytes) const {
    if (size_bytes == 0 || ::fallocate(fd.get(), 0, 0, static_cast<off_t>(size_bytes)) == 0) {
      return {};
    }
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
      return os_error(errno, path, "cannot write");
    }
    return {};
  }
};

}  // namespace graphlane::graphfmt
