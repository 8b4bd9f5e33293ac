#include "shim/locate/refused_stub.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "iomgr/volume/parts/refused_stub.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "shim/base/slow_lock.h"
#include "shim/fd/open_file.h"
#include "shim/locate/devices.h"
#include "shim/locate/locate.h"

namespace graphlane::shim {
namespace {

VolumeDevices refusing_volume;  // under the SlowLock

bool all_parts_name_another(int stub_fd, const Layout& layout) {
  const SlowLockGuard lock(slow_lock);
  Devices devices;
  return lock && !open_devices_of(stub_fd, layout, &refusing_volume, &devices) &&
         all_name_another_stub(devices.roots(), layout);
}

}  // namespace

int empty_refused_stub(int directory, const char* path, int flags) {
  const Fd stub = lifted(
      Fd(sys::openat(directory, path, O_RDWR | O_CLOEXEC | O_NONBLOCK | (flags & O_NOFOLLOW))));
  if (!stub) return errno;
  // Locks it, so that its content does not change during the check.
  for (const StubLock lock : {StubLock::kChange, StubLock::kParts}) {
    if (const Result<void> mine = lock_stub(stub.get(), lock, F_WRLCK); !mine) {
      return mine.error().code;
    }
  }
  struct stat st;
  Layout layout;
  if (sys::fstat(stub.get(), &st) != 0) return errno;
  if (!is_stub(stub.get(), st, &layout)) return EIO;
  if (!is_copied_stub(stub.get(), layout) && !all_parts_name_another(stub.get(), layout)) {
    return EIO;
  }
  if (::syscall(SYS_ftruncate, stub.get(), off_t{0}) != 0) return errno;
  identify_anew(st);
  return 0;
}

}  // namespace graphlane::shim
