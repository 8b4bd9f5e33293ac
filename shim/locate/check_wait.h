// Waiting for `graphlane check`, which has a volume's names (iomgr/volume/name_lock.h).
//
// A NameLock is taken under the SlowLock, by try_take() only. No thread forks under the SlowLock,
// so no child has a copy of the NameLock, which would keep a check out while the child lives. And a
// check may take minutes. A thread that waited for it under the SlowLock would keep all others from
// identifying files, with signals blocked. So a caller that fails releases the SlowLock, calls
// wait_for_check(), and starts again.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace graphlane::shim {

inline void wait_for_check() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
  ::syscall(SYS_nanosleep, &pause, nullptr);
}

}  // namespace graphlane::shim
