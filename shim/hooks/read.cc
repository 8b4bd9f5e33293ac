// The data path: reads of striped files go to the devices.
//
// A read() reserves its range by advancing the file offset first, and moves it back by the bytes
// that it did not get.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>

#include "shim/base/report.h"
#include "shim/fd/request.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/read/transfer.h"

namespace graphlane::shim {
namespace {

// Bytes or -errno.
ssize_t read_vector(const OpenFileRef& file, const Memory& memory, uint64_t offset) {
  size_t total = 0;
  const size_t wanted = wanted_bytes(memory);
  for (int i = 0; total < wanted; ++i) {
    const size_t left = wanted - total;
    const size_t length = memory.iov[i].iov_len < left ? memory.iov[i].iov_len : left;
    if (length == 0) continue;
    const ssize_t n = read_striped(file, offset + total, memory.iov[i].iov_base, length);
    // Only missing memory cuts a read short: the bytes before it arrive.
    if (n < 0 && (total == 0 || n != -EFAULT)) return n;
    total += n < 0 ? 0 : static_cast<size_t>(n);
    if (n < static_cast<ssize_t>(length)) break;
  }
  file->file_counters->count_read(total);
  return static_cast<ssize_t>(total);
}

// Reads past the kernel's single queue, unless the kernel must serve the call.
Attempt attempt_read(int fd, const Memory& memory, off_t offset, ssize_t* result) {
  const OpenFileRef file = acquire(fd);
  if (!file) return Attempt::kDeclined;
  if (file->origin == Origin::kDamaged) {
    *result = -file->error;
    return Attempt::kDone;
  }
  if (!may_read(file.access())) {
    *result = -EBADF;
    return Attempt::kDone;
  }
  // The library cannot honour flags (RWF_NOWAIT); over a mount FUSE does.
  if (memory.flags != 0 && !file.on_stub()) return Attempt::kDeclined;
  if (argument_error(*file, memory) != 0) return Attempt::kDeclined;
  const size_t wanted = wanted_bytes(memory);
  if (offset == kAtFileOffset) {
    const Reserved range(fd, wanted);
    if (!range) return Attempt::kDeclined;  // beyond the largest offset
    *result = read_vector(file, memory, range.begin());
    range.settle(*result);
  } else {
    if (offset > LLONG_MAX - static_cast<off_t>(wanted)) return Attempt::kDeclined;
    *result = read_vector(file, memory, static_cast<uint64_t>(offset));
  }
  if (*result == -EBADF && !file->lost.exchange(true, std::memory_order_relaxed)) {
    return Attempt::kLost;
  }
  if (*result < 0 && !file.on_stub()) {
    file->file_counters->failed_count.fetch_add(1, std::memory_order_relaxed);
    return Attempt::kDeclined;  // FUSE fails likewise, or can serve it
  }
  return Attempt::kDone;
}

// Holds no reference during libc's own call, which may end the thread (cancellation).
template <class Original>
ssize_t read_target(int fd, const Memory& memory, off_t offset, Original original) {
  if (offset < kAtFileOffset) return original();
  if (!memory.is_vector && memory.iov->iov_len <= kKernelReadMax) {
    SmallReads* const small = small_reads_of(fd);
    if (const auto n = small != nullptr ? small->by_kernel(original) : std::nullopt) return *n;
  }
  pthread_testcancel();
  ssize_t result = 0;
  Attempt outcome = attempt_read(fd, memory, offset, &result);
  if (outcome == Attempt::kLost) outcome = attempt_read(fd, memory, offset, &result);
  if (outcome == Attempt::kDeclined) return original();
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// `kOriginal` takes `rest` after the arguments here.
template <auto kOriginal, class... Rest>
[[gnu::noinline]] ssize_t read_one_slowly(int fd, void* buffer, size_t count, off_t offset,
                                          Rest... rest) {
  const iovec one{.iov_base = buffer, .iov_len = count};
  return read_target(fd, {.iov = &one, .count = 1}, offset,
                     [=] { return kOriginal(fd, buffer, count, rest...); });
}

template <auto kOriginal, class... Rest>
[[gnu::noinline]] ssize_t read_many_slowly(int fd, const iovec* iov, int count, off_t offset,
                                           int flags, Rest... rest) {
  return read_target(fd, {.iov = iov, .count = count, .flags = flags, .is_vector = true}, offset,
                     [=] { return kOriginal(fd, iov, count, rest...); });
}

// For a foreign descriptor: a load, and a jump to the original. Code that needs a stack frame is
// elsewhere.
template <auto kOriginal, class... Rest>
ssize_t read_one(int fd, void* buffer, size_t count, off_t offset, Rest... rest) {
  if (is_known_foreign(fd)) return kOriginal(fd, buffer, count, rest...);
  return read_one_slowly<kOriginal>(fd, buffer, count, offset, rest...);
}

template <auto kOriginal, class... Rest>
ssize_t read_many(int fd, const iovec* iov, int count, off_t offset, int flags, Rest... rest) {
  if (is_known_foreign(fd)) return kOriginal(fd, iov, count, rest...);
  return read_many_slowly<kOriginal>(fd, iov, count, offset, flags, rest...);
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

ssize_t hook_read(int fd, void* buffer, size_t count) {
  return read_one<real::read>(fd, buffer, count, kAtFileOffset);
}

ssize_t hook___read(int fd, void* buffer, size_t count) { return hook_read(fd, buffer, count); }

ssize_t hook___read_chk(int fd, void* buffer, size_t count, size_t room) {
  if (count > room) return real::__read_chk(fd, buffer, count, room);
  return read_one<real::__read_chk>(fd, buffer, count, kAtFileOffset, room);
}

ssize_t hook_pread(int fd, void* buffer, size_t count, off_t offset) {
  if (offset < 0) return real::pread(fd, buffer, count, offset);
  return read_one<real::pread>(fd, buffer, count, offset, offset);
}

ssize_t hook_pread64(int fd, void* buffer, size_t count, off_t offset) {
  return hook_pread(fd, buffer, count, offset);
}

ssize_t hook___pread64(int fd, void* buffer, size_t count, off_t offset) {
  return hook_pread(fd, buffer, count, offset);
}

ssize_t hook___pread_chk(int fd, void* buffer, size_t count, off_t offset, size_t room) {
  if (count > room || offset < 0) return real::__pread_chk(fd, buffer, count, offset, room);
  return read_one<real::__pread_chk>(fd, buffer, count, offset, offset, room);
}

ssize_t hook___pread64_chk(int fd, void* buffer, size_t count, off_t offset, size_t room) {
  return hook___pread_chk(fd, buffer, count, offset, room);
}

ssize_t hook_readv(int fd, const iovec* iov, int count) {
  return read_many<real::readv>(fd, iov, count, kAtFileOffset, 0);
}

ssize_t hook_preadv(int fd, const iovec* iov, int count, off_t offset) {
  if (offset < 0) return real::preadv(fd, iov, count, offset);
  return read_many<real::preadv>(fd, iov, count, offset, 0, offset);
}

ssize_t hook_preadv64(int fd, const iovec* iov, int count, off_t offset) {
  return hook_preadv(fd, iov, count, offset);
}

ssize_t hook_preadv2(int fd, const iovec* iov, int count, off_t offset, int flags) {
  return read_many<real::preadv2>(fd, iov, count, offset, flags, offset, flags);
}

ssize_t hook_preadv64v2(int fd, const iovec* iov, int count, off_t offset, int flags) {
  return hook_preadv2(fd, iov, count, offset, flags);
}
