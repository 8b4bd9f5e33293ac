#include "shim/fd/access.h"

#include <cerrno>

#include "iomgr/base/sys.h"

namespace graphlane::shim {
namespace {

// SIGCANCEL and SIGSETXID of glibc and musl: sigaction() refuses both.
constexpr long kSignalOfWrite = 32;
constexpr long kSignalOfBoth = 33;

}  // namespace

Access access_of(int fd, int flags) {
  const Access access = access_of_flags(flags);
  if (access != Access::kRead) return access;
  switch (sys::fcntl(fd, F_GETSIG)) {
    case kSignalOfWrite: return Access::kWrite;
    case kSignalOfBoth: return Access::kBoth;
    default: return access;
  }
}

int grant(int fd, Access access) {
  if (!may_write(access)) return 0;
  const long signal = may_read(access) ? kSignalOfBoth : kSignalOfWrite;
  return sys::fcntl(fd, F_SETSIG, signal) == 0 ? 0 : errno;
}

}  // namespace graphlane::shim
