#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/fuzz/target.h"

namespace graphlane::fuzz {

std::vector<std::span<const FuzzTarget>> all_targets() {
  return {volume_targets(), server_targets(), share_targets(), kit_targets(),
          graph_targets(),  pages_targets(),  shim_targets()};
}

const FuzzTarget* find_target(std::string_view name) {
  for (const auto targets : all_targets()) {
    for (const FuzzTarget& target : targets) {
      if (target.name == name) return &target;
    }
  }
  return nullptr;
}

InputFile::InputFile(Bytes input) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  require(fd_ >= 0 &&
          ::pwrite(fd_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()));
  std::snprintf(path_, sizeof path_, "/proc/self/fd/%d", fd_);
}

InputFile::~InputFile() { ::close(fd_); }

WorkDirectory::WorkDirectory() {
  char name[] = "/dev/shm/graphlane-fuzz-XXXXXX";
  char elsewhere[] = "/tmp/graphlane-fuzz-XXXXXX";
  const char* made = ::mkdtemp(name);
  if (made == nullptr) made = ::mkdtemp(elsewhere);
  require(made != nullptr);
  path_ = made;
}

WorkDirectory::~WorkDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void WorkDirectory::write(const std::string& name, Bytes content) const {
  const int fd = ::open(path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  require(fd >= 0 &&
          ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  ::close(fd);
}

void WorkDirectory::make(const std::string& name) const {
  require(::mkdir(path(name).c_str(), 0755) == 0);
}

}  // namespace graphlane::fuzz
