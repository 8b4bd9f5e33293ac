#include "iomgr/base/process/memory_pressure.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace graphlane {
namespace {

// Microseconds. Without root only multiples of two seconds are allowed.
constexpr char kTrigger[] = "some 100000 2000000";

Fd watch(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  // With the terminating zero.
  if (fd && ::write(fd.get(), kTrigger, sizeof kTrigger) < 0) fd.reset();
  return fd;
}

}  // namespace

Fd watch_memory_pressure(const char* root) {
  const std::string at = root;
  std::ifstream groups(at + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    if (Fd fd = watch(at + "/sys/fs/cgroup" + line.substr(3) + "/memory.pressure")) return fd;
  }
  return watch(at + "/proc/pressure/memory");
}

}  // namespace graphlane
