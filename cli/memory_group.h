// A memory control group for programs that are to have little memory: they, and the page cache that they fill.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane::cli {

class MemoryGroup {
 public:
  // Uses version 1 or 2 of control groups, whichever is mounted. EPERM and the like: this user may not make one.
  static Outcome<std::unique_ptr<MemoryGroup>> make(uint64_t limit_bytes);
  ~MemoryGroup();  // programs in it have ended

  // The words that run `words` in the group.
  std::vector<std::string> enter(std::vector<std::string> words) const;

 private:
  explicit MemoryGroup(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace graphlane::cli
