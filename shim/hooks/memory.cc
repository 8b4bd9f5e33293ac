// Tracks how allocators use memory in which the library may have mapped pages.
#include <sys/mman.h>

#include "iomgr/base/sys.h"
#include "shim/hooks/hooks.h"
#include "shim/share/mapped_pages.h"

using namespace graphlane;
using namespace graphlane::shim;

// An allocator calls this with its own locks held. So libc's function is not looked up, which may
// allocate: the system call is the same.
int hook_madvise(void* address, size_t length, int advice) {
  constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED
  if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == kDontNeedLocked) {
    hide(address, round_up(length, kBlockSize));
  }
  return sys::madvise(address, length, advice);
}
