// Request: the memory and the range of a read or a write call: the arguments that both families
// share.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

#include "iomgr/base/sys.h"
#include "shim/fd/open_file.h"

namespace graphlane::shim {

// The offset that preadv2() takes for the file's own.
inline constexpr off_t kAtFileOffset = -1;

// The kernel moves no more in one call (MAX_RW_COUNT).
inline constexpr size_t kMovedMax = 0x7ffff000;

// The memory of a call: the arguments of preadv2(), or of pread().
struct Memory {
  const iovec* iov = nullptr;
  int count = 0;
  int flags = 0;           // RWF_*
  bool is_vector = false;  // the program's own array, which may be anywhere
};

// 0, or the kernel's errno for the arguments. It is asked to read far behind the end of a part, so
// it reports every invalid argument (EFAULT, EINVAL, an unknown flag), and the library need not
// check.
inline int argument_error(const OpenFile& file, const Memory& memory) {
  constexpr uint64_t kFarOff = uint64_t{1} << 62;
  const bool plain = !memory.is_vector && memory.iov->iov_len <= kMovedMax;
  if (plain && memory.flags == 0) return 0;
  const int part = file.parts->buffered(0);
  const int saved_errno = errno;
  const long n =
      memory.is_vector
          ? ::syscall(SYS_preadv2, part, memory.iov, memory.count, kFarOff, 0, memory.flags)
          : sys::pread(part, memory.iov->iov_base, memory.iov->iov_len, kFarOff);
  const int error = n < 0 ? errno : 0;
  errno = saved_errno;
  return error;
}

// The most bytes that the kernel would move.
inline size_t wanted_bytes(const Memory& memory) {
  size_t total = 0;
  for (int i = 0; i < memory.count && total < kMovedMax; ++i) total += memory.iov[i].iov_len;
  return total < kMovedMax ? total : kMovedMax;
}

// A range of the file, reserved by advancing the file offset. The offset is the kernel's, which
// fork, dup and exec share, so it must advance at once.
struct Reserved {
  Reserved(int fd_, size_t wanted_bytes) : fd(fd_), wanted(static_cast<off_t>(wanted_bytes)) {
    const int saved_errno = errno;
    end = sys::lseek(fd, wanted, SEEK_CUR);
    errno = saved_errno;
  }
  explicit operator bool() const { return end >= 0; }
  uint64_t begin() const { return static_cast<uint64_t>(end - wanted); }
  // Moves the offset back by the bytes that were not moved.
  void settle(ssize_t result) const {
    const off_t left = wanted - (result > 0 ? result : 0);
    if (left > 0) sys::lseek(fd, -left, SEEK_CUR);
  }

  const int fd;
  const off_t wanted;
  off_t end = -1;
};

enum class Attempt {
  kDone,
  kDeclined,  // libc's own
  kLost,      // the file's state has changed: try again
};

}  // namespace graphlane::shim
