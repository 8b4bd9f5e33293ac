// A memory control group that limits the memory of programs and of the page cache that they fill.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane::cli {

class MemoryGroup {
 public:
  // Uses version 1 or 2 of control groups, as mounted. EPERM and the like: this user may not make
  // one.
  static Outcome<std::unique_ptr<MemoryGroup>> make(uint64_t limit_bytes);
  ~MemoryGroup();  // its programs must have ended

  // The command line that runs `words` in the group.
  std::vector<std::string> enter(std::vector<std::string> words) const;

 private:
  explicit MemoryGroup(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace graphlane::cli
