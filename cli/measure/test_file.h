// TestFile: a file without a name on a device, full of random bytes, for measurements of reads. It
// vanishes with the process, however that ends.
#pragma once

#include <cstdint>
#include <string>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::cli {

class TestFile {
 public:
  // Makes it on the filesystem of `directory`, written through to the device. An interrupt
  // (base/interrupt.h) ends it.
  static Outcome<TestFile> make(const std::string& directory, uint64_t size_bytes);

  // A path at which other processes can open it while it exists.
  std::string path() const;
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  TestFile(Fd fd, uint64_t size_bytes) : fd_(std::move(fd)), size_bytes_(size_bytes) {}
  Fd fd_;
  uint64_t size_bytes_;
};

}  // namespace graphlane::cli
