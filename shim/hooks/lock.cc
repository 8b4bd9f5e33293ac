// Without a mount: record locks of striped files. They lie on the stub, with two differences. A
// write lock needs a writable descriptor; any of the file's will do, because the process owns the
// lock. And "to the end of the file" ends before the byte by which writers exclude mounts
// (iomgr/volume/stub/stub_lock.h).
//
// A lock of an open file description (F_OFD_SETLK) is the program's own description's. The kernel
// has that open for reading, so the lock can only be shared. On the stub's description, which all
// of the process's writers share, it would exclude none of them.
//
// flock() needs no hook: it locks the stub. A process loses its record locks on a file when it
// closes any descriptor of it. So a file that is open or locked is not opened again to look at it:
// neither stubs (size_if_open(), acquire_open()) nor other files. looked at: stubs (size_if_open(),
// acquire_open()), and other files that it locks.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>

#include "iomgr/base/sys.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "shim/fd/open_file.h"
#include "shim/fd/record_lock.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

// As fcntl(2), which may wait until the thread is cancelled: then it releases the file.
int call(OpenFileRef* file, int fd, int command, struct flock* lock) {
  int status = 0;
  pthread_cleanup_push([](void* held) { static_cast<OpenFileRef*>(held)->~OpenFileRef(); }, file);
  status = real::fcntl(fd, command, reinterpret_cast<long>(lock));
  pthread_cleanup_pop(0);
  return status;
}

constexpr auto kEnd = static_cast<off_t>(StubLock::kChange);

bool is_of_description(int command) {
  return command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

// The descriptors that have locked ordinary files, one bit each. A bit of a closed descriptor only
// costs a look at the file that has its number now.
class LockedFds {
 public:
  void note(int fd) {
    if (!FdTable::covers(fd)) return;
    const uint32_t word = static_cast<uint32_t>(fd) / 64;
    const uint64_t bit = uint64_t{1} << fd % 64;
    if ((words_[word].load(std::memory_order_relaxed) & bit) == 0) words_[word].fetch_or(bit);
    uint32_t used = used_.load();
    while (used <= word && !used_.compare_exchange_weak(used, word + 1)) continue;
  }

  template <class Visit>
  bool any(Visit visit) const {
    const uint32_t used = used_.load();
    for (uint32_t word = 0; word < used; ++word) {
      for (uint64_t bits = words_[word].load(); bits != 0; bits &= bits - 1) {
        if (visit(static_cast<int>(word * 64) + std::countr_zero(bits))) return true;
      }
    }
    return false;
  }

 private:
  std::atomic<uint64_t> words_[FdTable::kFdMax / 64] = {};
  std::atomic<uint32_t> used_{0};  // all later words are zero
};
constinit LockedFds locked_fds;

// Makes the range start from the beginning of the file. False: an impossible one.
bool make_absolute(const OpenFileRef& file, int fd, struct flock* lock) {
  off_t base = 0;
  if (lock->l_whence == SEEK_CUR) {
    base = sys::lseek(fd, 0, SEEK_CUR);
  } else if (lock->l_whence == SEEK_END) {
    base = static_cast<off_t>(file.size());
  } else if (lock->l_whence != SEEK_SET) {
    return false;
  }
  if (__builtin_add_overflow(base, lock->l_start, &lock->l_start)) return false;
  lock->l_whence = SEEK_SET;
  if (lock->l_len < 0) {
    lock->l_start += lock->l_len;
    lock->l_len = -lock->l_len;
  }
  return lock->l_start >= 0 && lock->l_start < kEnd;
}

}  // namespace

bool may_have_locks_on(const struct stat& st) {
  const int saved_errno = errno;
  const bool may = locked_fds.any([&](int fd) {
    struct stat locked;
    return sys::fstat(fd, &locked) == 0 && locked.st_ino == st.st_ino &&
           locked.st_dev == st.st_dev && !acquire_stub(fd);
  });
  errno = saved_errno;
  return may;
}

bool lock_record(int fd, int command, struct flock* asked, int* status) {
  OpenFileRef file = acquire_stub(fd);
  if (!file) {
    if (command == F_SETLK || command == F_SETLKW) locked_fds.note(fd);  // before it has the lock
    return false;
  }
  *status = -1;
  const bool asks = command == F_GETLK || command == F_OFD_GETLK;
  const bool excludes = asked->l_type == F_WRLCK && !asks;
  if (excludes && !may_write(file.access())) {
    errno = EBADF;
    return true;
  }
  if (excludes && is_of_description(command)) {
    explain_once(Refusal::kLock);
    errno = EINVAL;  // as a kernel without such locks
    return true;
  }
  struct flock lock = *asked;
  if (!make_absolute(file, fd, &lock)) {
    errno = EINVAL;
    return true;
  }
  const off_t room = kEnd - lock.l_start;
  if (lock.l_len == 0 || lock.l_len > room) lock.l_len = room;
  const int owner = may_write(file.access()) && !is_of_description(command) ? file->stub.fd : fd;
  *status = call(&file, owner, command, &lock);
  if (*status == 0 && asks && lock.l_type == F_UNLCK) {
    asked->l_type = F_UNLCK;
  } else if (*status == 0 && asks) {
    *asked = lock;
  }
  return true;
}

}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

int hook_lockf(int fd, int command, off_t length) {
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = 0, .l_len = length, .l_pid = 0};
  int how = F_SETLK;
  switch (command) {
    case F_LOCK: how = F_SETLKW; break;
    case F_TLOCK: break;
    case F_ULOCK: lock.l_type = F_UNLCK; break;
    case F_TEST: how = F_GETLK; break;
    default: return real::lockf(fd, command, length);
  }
  int status = 0;
  if (!lock_record(fd, how, &lock, &status)) return real::lockf(fd, command, length);
  if (status != 0 || command != F_TEST || lock.l_type == F_UNLCK) {
    return status;
  }
  errno = EACCES;
  return -1;
}

int hook_lockf64(int fd, int command, off_t length) { return hook_lockf(fd, command, length); }
