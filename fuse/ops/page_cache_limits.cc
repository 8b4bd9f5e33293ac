#include "fuse/ops/page_cache_limits.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/cache/memory_budget.h"

namespace graphlane::fuse {
namespace {

// The kernel's read-ahead of a stream. It asks for all of it at once and waits for it, so it must
// span several devices. SSDs need as much as keeps all of them busy; disks want long runs. More
// would leave no room beside a few streams, and would hurt random faults in mappings, which read
// this much around themselves. The part beyond a stream's last block is read in vain.
constexpr uint64_t kReadAheadMin = 1 << 20;
constexpr uint64_t kReadAheadMax = 16 << 20;

uint64_t dirty_bytes_of_all() {
  std::ifstream counters("/proc/vmstat");
  std::string name;
  uint64_t pages;
  while (counters >> name >> pages) {
    if (name == "nr_dirty_threshold") return pages * static_cast<uint64_t>(::getpagesize());
  }
  return 0;
}

// False: the kernel rejected the value.
bool set(dev_t device, std::string_view name, uint64_t value) {
  const std::string path =
      fmt::format("/sys/class/bdi/{}:{}/{}", major(device), minor(device), name);
  const Fd file(sys::openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = fmt::format("{}", value);
  return !file || write_full(file.get(), text.data(), text.size());
}

}  // namespace

void raise_page_cache_limits(dev_t device, const Volume& volume) {
  const uint64_t available = memory_available_bytes();
  const uint64_t row = volume.device_count() * volume.stripe_depth_bytes();
  const uint64_t enough = volume.is_on_ssds() ? row : kReadAheadMax;
  const uint64_t most = std::clamp(enough, kReadAheadMin, kReadAheadMax);
  set(device, "read_ahead_kb",
      std::clamp(budget_of(MemoryUse::kKernelReadAhead, available), kReadAheadMin, most) >> 10);
  // Linux 6.2. Sets the minimum too, because between both the limit follows the mount's recent
  // writes, and a new mount has none. (A little below the maximum: the kernel rounds both to
  // fractions of a moving limit, and rejects a minimum above the maximum, or above what other
  // mounts leave.)
  const uint64_t dirty =
      budget_of(MemoryUse::kDirtyPages, std::min(available, dirty_bytes_of_all()));
  set(device, "max_bytes", dirty);
  uint64_t least = dirty / 8 * 7;
  while (least > 0 && !set(device, "min_bytes", least)) least /= 2;
}

}  // namespace graphlane::fuse
