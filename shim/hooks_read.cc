// The data path: reads of striped files go to the devices.
//
// A read() reserves its range by moving the file offset first, and moves it back
// by what it did not get.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>

#include "shim/hooks.h"
#include "shim/real.h"
#include "shim/report.h"
#include "shim/request.h"
#include "shim/transfer.h"

namespace graphlane {
namespace {

// Bytes or -errno.
ssize_t read_vector(const OpenFileRef& file, const Memory& memory, uint64_t offset) {
  size_t total = 0;
  const size_t wanted = wanted_bytes(memory);
  for (int i = 0; total < wanted; ++i) {
    const size_t left = wanted - total;
    const size_t length = memory.iov[i].iov_len < left ? memory.iov[i].iov_len : left;
    if (length == 0) continue;
    const ssize_t n =
        read_striped(file, offset + total, memory.iov[i].iov_base, length);
    // Only memory that is not there cuts a read short: what is before it arrives.
    if (n < 0 && (total == 0 || n != -EFAULT)) return n;
    total += n < 0 ? 0 : static_cast<size_t>(n);
    if (n < static_cast<ssize_t>(length)) break;
  }
  file->file_counters->count_read(total);
  return static_cast<ssize_t>(total);
}

// Reads past the kernel's single queue, unless the kernel must have it.
Attempt attempt(int fd, const Memory& memory, off_t offset, ssize_t* result) {
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
  // Flags ask for what we cannot promise (RWF_NOWAIT): FUSE's, if it is there.
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
    return Attempt::kDeclined;  // FUSE says the same, or serves what we could not
  }
  return Attempt::kDone;
}

// No reference is held where libc's own call may end the thread (cancellation).
template <class Original>
ssize_t read_target(int fd, const Memory& memory, off_t offset, Original original) {
  if (is_known_foreign(fd) || offset < kAtFileOffset) return original();
  if (!memory.is_vector && memory.iov->iov_len <= SmallReads::kBytesMax) {
    SmallReads* const small = small_reads_of(fd);
    if (const auto n = small != nullptr ? small->by_kernel(original) : std::nullopt) return *n;
  }
  pthread_testcancel();
  ssize_t result = 0;
  Attempt outcome = attempt(fd, memory, offset, &result);
  if (outcome == Attempt::kLost) outcome = attempt(fd, memory, offset, &result);
  if (outcome == Attempt::kDeclined) return original();
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

template <class Original>
ssize_t read_one(int fd, void* buffer, size_t count, off_t offset, Original original) {
  const iovec one{.iov_base = buffer, .iov_len = count};
  return read_target(fd, {.iov = &one, .count = 1}, offset, original);
}

template <class Original>
ssize_t read_many(int fd, const iovec* iov, int count, off_t offset, int flags,
                  Original original) {
  return read_target(fd, {.iov = iov, .count = count, .flags = flags, .is_vector = true}, offset,
                     original);
}

}  // namespace
}  // namespace graphlane

using namespace graphlane;

ssize_t hook_read(int fd, void* buffer, size_t count) {
  return read_one(fd, buffer, count, kAtFileOffset, [=] { return real::read(fd, buffer, count); });
}

ssize_t hook___read(int fd, void* buffer, size_t count) { return hook_read(fd, buffer, count); }

ssize_t hook___read_chk(int fd, void* buffer, size_t count, size_t room) {
  const auto original = [=] { return real::__read_chk(fd, buffer, count, room); };
  return count > room ? original() : read_one(fd, buffer, count, kAtFileOffset, original);
}

ssize_t hook_pread(int fd, void* buffer, size_t count, off_t offset) {
  const auto original = [=] { return real::pread(fd, buffer, count, offset); };
  return offset < 0 ? original() : read_one(fd, buffer, count, offset, original);
}

ssize_t hook_pread64(int fd, void* buffer, size_t count, off_t offset) {
  return hook_pread(fd, buffer, count, offset);
}

ssize_t hook___pread64(int fd, void* buffer, size_t count, off_t offset) {
  return hook_pread(fd, buffer, count, offset);
}

ssize_t hook___pread_chk(int fd, void* buffer, size_t count, off_t offset, size_t room) {
  const auto original = [=] { return real::__pread_chk(fd, buffer, count, offset, room); };
  if (count > room || offset < 0) return original();
  return read_one(fd, buffer, count, offset, original);
}

ssize_t hook___pread64_chk(int fd, void* buffer, size_t count, off_t offset, size_t room) {
  return hook___pread_chk(fd, buffer, count, offset, room);
}

ssize_t hook_readv(int fd, const iovec* iov, int count) {
  return read_many(fd, iov, count, kAtFileOffset, 0, [=] { return real::readv(fd, iov, count); });
}

ssize_t hook_preadv(int fd, const iovec* iov, int count, off_t offset) {
  const auto original = [=] { return real::preadv(fd, iov, count, offset); };
  return offset < 0 ? original() : read_many(fd, iov, count, offset, 0, original);
}

ssize_t hook_preadv64(int fd, const iovec* iov, int count, off_t offset) {
  return hook_preadv(fd, iov, count, offset);
}

ssize_t hook_preadv2(int fd, const iovec* iov, int count, off_t offset, int flags) {
  return read_many(fd, iov, count, offset, flags,
                   [=] { return real::preadv2(fd, iov, count, offset, flags); });
}

ssize_t hook_preadv64v2(int fd, const iovec* iov, int count, off_t offset, int flags) {
  return hook_preadv2(fd, iov, count, offset, flags);
}
