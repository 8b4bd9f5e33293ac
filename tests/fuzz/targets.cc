#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "tests/fuzz/target.h"

namespace graphlane::fuzz {

const FuzzTarget* find_target(std::string_view name) {
  for (const auto targets : {volume_targets(), server_targets(), share_targets(), kit_targets(), graph_targets(),
                             pages_targets()}) {
    for (const FuzzTarget& target : targets) {
      if (target.name == name) return &target;
    }
  }
  return nullptr;
}

InputFile::InputFile(Bytes input) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  require(fd_ >= 0 && ::pwrite(fd_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()));
  std::snprintf(path_, sizeof path_, "/proc/self/fd/%d", fd_);
}

InputFile::~InputFile() { ::close(fd_); }

}  // namespace graphlane::fuzz
