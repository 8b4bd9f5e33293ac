#include "shim/fd/internal_fd.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "iomgr/base/sys.h"
#include "shim/fd/fd_table.h"

namespace graphlane::shim {

int internal_fd_floor() {
  static std::atomic<int> floor{0};
  int known = floor.load(std::memory_order_relaxed);
  if (known > 0) return known;
  rlimit limit{};
  ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  // The upper quarter, but with a high limit no higher than 3/4 of 65536, because the kernel's
  // table of descriptors grows to the highest number.
  known = static_cast<int>(std::clamp<rlim_t>(limit.rlim_cur, 4, 65536) / 4 * 3);
  floor.store(known, std::memory_order_relaxed);
  return known;
}

Fd lifted(Fd fd) {
  if (!fd || fd.get() >= internal_fd_floor()) return fd;
  Fd high(sys::fcntl(fd.get(), F_DUPFD_CLOEXEC, internal_fd_floor()));
  return high ? std::move(high) : std::move(fd);
}

int keep_internal(Fd fd) {
  const int kept = lifted(std::move(fd)).release();
  set_entry(kept, FdEntry::internal());
  return kept;
}

void drop_internal(int fd) {
  set_entry(fd, FdEntry::unknown());
  sys::close(fd);
}

}  // namespace graphlane::shim
