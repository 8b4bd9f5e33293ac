#include "iomgr/volume/stub/stub_lock.h"

#include <ctime>

#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

struct flock description(StubLock lock, short type) {
  return {.l_type = type,
          .l_whence = SEEK_SET,
          .l_start = static_cast<off_t>(lock),
          .l_len = 1,
          .l_pid = 0};
}

int call(int fd, int command, struct flock* lock) {
  return sys::fcntl(fd, command, reinterpret_cast<intptr_t>(lock));
}

}  // namespace

Result<void> lock_stub(int stub_fd, StubLock lock, short type) {
  struct flock wanted = description(lock, type);
  if (call(stub_fd, F_OFD_SETLK, &wanted) == 0) return {};
  return Errno{errno == EAGAIN || errno == EACCES ? EBUSY : errno};
}

namespace {

// Two concurrent callers may both give up: that is better than both succeeding.
Result<void> lock_unless(int stub_fd, StubLock lock, short type, StubLock other) {
  if (Result<void> mine = lock_stub(stub_fd, lock, type); !mine) return mine;
  if (!is_stub_locked(stub_fd, other, F_WRLCK)) return {};
  (void)lock_stub(stub_fd, lock, F_UNLCK);
  return Errno{EBUSY};
}

}  // namespace

Result<void> lock_to_change(int stub_fd, short type) {
  constexpr int kLooks = 2500;
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 2'000'000};
  Result<void> mine = lock_unless(stub_fd, StubLock::kChange, type, StubLock::kMapped);
  const auto waits = [&] {
    return !mine && mine.error().code == EBUSY &&
           is_stub_locked(stub_fd, StubLock::kClosing, F_RDLCK);
  };
  if (!waits()) return mine;
  (void)lock_stub(stub_fd, StubLock::kWanted, F_RDLCK);
  for (int look = 0; look < kLooks && waits(); ++look) {
    (void)::syscall(SYS_nanosleep, &kPause, nullptr);
    mine = lock_unless(stub_fd, StubLock::kChange, type, StubLock::kMapped);
  }
  (void)lock_stub(stub_fd, StubLock::kWanted, F_UNLCK);
  return mine;
}

Result<void> lock_to_map(int stub_fd) {
  return lock_unless(stub_fd, StubLock::kMapped, F_RDLCK, StubLock::kChange);
}

bool is_stub_locked(int stub_fd, StubLock lock, short type) {
  struct flock wanted = description(lock, type);
  return call(stub_fd, F_OFD_GETLK, &wanted) == 0 && wanted.l_type != F_UNLCK;
}

bool is_fresh(int64_t ctime_ns) {
  constexpr int64_t kTickMax = 20'000'000;  // two ticks of the slowest kernel
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now) - ctime_ns <= kTickMax;
}

bool may_change_unseen(int stub_fd, int64_t ctime_ns) {
  return is_fresh(ctime_ns) || is_stub_locked(stub_fd, StubLock::kChange, F_WRLCK);
}

void hold_parts(int stub_fd) {
  struct flock wanted = description(StubLock::kParts, F_RDLCK);
  while (call(stub_fd, F_OFD_SETLKW, &wanted) != 0 && errno == EINTR) continue;
}

}  // namespace graphlane
