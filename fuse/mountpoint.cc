#include "fuse/mountpoint.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "iomgr/base/fd.h"
#include "iomgr/base/file_io.h"
#include "iomgr/memory_limit.h"

namespace graphlane {
namespace {

// What the kernel reads ahead of a stream, in its own page cache: no more than a few such
// streams can keep there; beyond that our cache reads ahead. The most is more than a few
// stripe units, so that one stream keeps several devices busy; more still would hurt random
// faults in maps, which read this much around themselves.
constexpr uint64_t kReadAheadMin = 1 << 20;
constexpr uint64_t kReadAheadMax = 16 << 20;
constexpr uint64_t kReadAheadShare = 256;

}  // namespace

Outcome<std::string> absolute_mountpoint(const std::string& path) {
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) != nullptr) return std::string(real);
  if (errno != ENOTCONN) return os_error(errno, path, "cannot find");
  const size_t end = path.find_last_not_of('/');
  const std::string trimmed = path.substr(0, end + 1);
  const size_t slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : trimmed.substr(0, slash + 1);
  if (::realpath(parent.c_str(), real) == nullptr) return os_error(errno, path, "cannot find");
  const std::string above = real;
  return (above == "/" ? "" : above) + "/" + trimmed.substr(slash + 1);
}

void raise_read_ahead(dev_t device) {
  const std::string path =
      fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(device), minor(device));
  const Fd file(sys::openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CLOEXEC));
  // Only root may; without it buffered reads are slower, not wrong.
  const uint64_t bytes =
      std::clamp(memory_available_bytes() / kReadAheadShare, kReadAheadMin, kReadAheadMax);
  const std::string kib = fmt::format("{}", bytes >> 10);
  if (file) (void)write_full(file.get(), kib.data(), kib.size());
}

}  // namespace graphlane
