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

namespace graphlane {
namespace {

// What the kernel reads ahead of a stream: enough for several devices, as it asks for all of
// it at once, and waits for that; not so much that a few streams leave no room. More would hurt
// random faults in maps, which read this much around themselves. On SSDs as much as keeps all of
// them busy is enough; disks want long runs. What lies behind the last block of a stream is read
// for nothing.
constexpr uint64_t kReadAheadMin = 1 << 20;
constexpr uint64_t kReadAheadMax = 16 << 20;
constexpr uint64_t kReadAheadShare = 32;  // POSIX_FADV_SEQUENTIAL doubles it

// Dirty pages: of what there is room for, and of what the kernel allows everybody together.
// An engine's vertex files should stay in memory for an iteration, yet not so many that
// nothing else can: no page of them goes before we have written it.
constexpr uint64_t kDirtyShare = 4;

uint64_t dirty_bytes_of_all() {
  std::ifstream counters("/proc/vmstat");
  std::string name;
  uint64_t pages;
  while (counters >> name >> pages) {
    if (name == "nr_dirty_threshold") return pages * static_cast<uint64_t>(::getpagesize());
  }
  return 0;
}

// False: the kernel refuses the value.
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
  set(device, "read_ahead_kb", std::clamp(available / kReadAheadShare, kReadAheadMin, most) >> 10);
  // Linux 6.2. The least beside the most: what lies between goes by how fast the mount has
  // written of late, and a new one has written nothing. (A little less: the kernel makes shares
  // of them, of a limit that moves, and refuses a least above the most, or above what other
  // mounts have left.)
  const uint64_t dirty = std::min(available, dirty_bytes_of_all()) / kDirtyShare;
  set(device, "max_bytes", dirty);
  uint64_t least = dirty / 8 * 7;
  while (least > 0 && !set(device, "min_bytes", least)) least /= 2;
}

}  // namespace graphlane
