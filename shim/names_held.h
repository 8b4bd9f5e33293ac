// NamesHeld: names of stubs and parts stay as they are for `graphlane check` while
// it compares the two; whoever changes them holds it off (iomgr/FORMAT.md, "Locks").
//
// Under the SlowLock (a static buffer).
#pragma once

#include <sys/file.h>

#include <string_view>

#include "iomgr/base/fd.h"
#include "shim/text.h"

namespace graphlane {

class NamesHeld {
 public:
  explicit NamesHeld(std::string_view volume_directory) {
    static PathText path;
    path.cut(0);
    path << volume_directory << "/.graphlane/run/lock";
    lock_.reset(sys::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
    while (lock_ && ::syscall(SYS_flock, lock_.get(), LOCK_SH) != 0 && errno == EINTR) continue;
  }

 private:
  Fd lock_;
};

}  // namespace graphlane
