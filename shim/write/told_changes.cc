#include "shim/write/told_changes.h"

#include <fcntl.h>

#include <cerrno>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/sys.h"
#include "iomgr/server/share_client.h"
#include "iomgr/volume/sum/scratch_block.h"
#include "shim/base/settings.h"
#include "shim/base/slow_lock.h"
#include "shim/locate/locate.h"

namespace graphlane::shim {
namespace {

void tell_server(const OpenFile& file) {
  const SlowLockGuard lock(slow_lock);
  const Fd run_directory = lock ? open_run_directory(file.stub.fd) : Fd();
  if (run_directory) tell_volume_of_change(run_directory.get(), file.stub.fd);
}

}  // namespace

void tell_of_change(const OpenFile& file) {
  const char* const list_path = settings().changes;
  if (file.stub.told.exchange(true, std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  if (list_path == nullptr) {
    tell_server(file);
    errno = saved_errno;
    return;
  }
  const ScratchBlock path;
  if (path.bytes() != nullptr) {
    const long length = ::syscall(SYS_readlinkat, AT_FDCWD, ProcPath(file.stub.fd).c_str(),
                                  path.bytes(), kBlockSize - 1);
    const Fd list(sys::openat(AT_FDCWD, list_path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
    if (list && length > 0 && length < static_cast<long>(kBlockSize - 1)) {
      path.bytes()[length] = '\0';
      // One call: the entries of several programs do not mix.
      (void)!::syscall(SYS_write, list.get(), path.bytes(), length + 1);
    }
  }
  errno = saved_errno;
}

}  // namespace graphlane::shim
