// TestFile: a file without a name on a device, full of random bytes, to be read by
// somebody who measures. However this process ends, it is gone then.
#pragma once

#include <cstdint>
#include <string>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::cli {

class TestFile {
 public:
  // On the filesystem of `directory`. Written through to the device; an interrupt
  // (base/interrupt.h) ends it.
  static Outcome<TestFile> make(const std::string& directory, uint64_t size_bytes);

  // Where others may open it while it is there.
  std::string path() const;
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  TestFile(Fd fd, uint64_t size_bytes) : fd_(std::move(fd)), size_bytes_(size_bytes) {}
  Fd fd_;
  uint64_t size_bytes_;
};

}  // namespace graphlane::cli
