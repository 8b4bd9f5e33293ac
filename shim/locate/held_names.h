// HeldNames: the lock of a volume's names (iomgr/volume/names_held.h), for who has the SlowLock.
//
// No thread forks under the SlowLock, so no child has a copy of the lock, which would keep
// `graphlane check` out for as long as the child lives. And nobody waits under it for a check,
// which may take minutes: no thread would identify a file meanwhile, and no signal would come.
// Who is refused gives the SlowLock back, waits a little, and begins anew.
#pragma once

#include <ctime>

#include "iomgr/volume/names_held.h"

namespace graphlane {

class HeldNames {
 public:
  // `root_fd` is the volume's directory. False: a check has it. As with NamesHeld, who may not
  // even open the lock file goes on without.
  bool take(int root_fd) {
    lock_ = open_lock_file(root_fd, O_RDONLY | O_CREAT);
    return !lock_ || lock_names(lock_.get(), F_RDLCK, F_OFD_SETLK) || errno != EAGAIN;
  }

 private:
  Fd lock_;
};

// Between two tries, without the SlowLock.
inline void wait_for_check() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
  ::syscall(SYS_nanosleep, &pause, nullptr);
}

}  // namespace graphlane
