// The data path: reads of striped files go to the devices.
//
// The file offset is the kernel's (fork, dup and exec share it with others): a
// read() reserves its range by moving the offset first, which is atomic, and
// moves it back by what it did not get.
#include <fcntl.h>
#include <limits.h>

#include "iomgr/base/sys.h"
#include "shim/hooks.h"
#include "shim/open_file.h"
#include "shim/reader.h"
#include "shim/real.h"
#include "shim/report.h"

namespace graphlane {
namespace {

// The kernel moves no more in one call (MAX_RW_COUNT).
constexpr size_t kReadMax = 0x7ffff000;

// Reads at an offset into several buffers. Bytes or -errno.
ssize_t read_vector(const OpenFileRef& file, const iovec* iov, int count, uint64_t offset) {
  if (file->origin == Origin::kDamaged) return -EIO;
  ssize_t total = 0;
  for (int i = 0; i < count; ++i) {
    const size_t length = iov[i].iov_len < kReadMax - static_cast<size_t>(total)
                              ? iov[i].iov_len
                              : kReadMax - static_cast<size_t>(total);
    if (length == 0) continue;
    const ssize_t n = read_striped(*file, file.direct(), offset + static_cast<uint64_t>(total),
                                   iov[i].iov_base, length);
    if (n < 0) return n;
    total += n;
    if (static_cast<size_t>(n) < length) break;
  }
  FileCounters& counters = *file->file_counters;
  counters.read_count.fetch_add(1, std::memory_order_relaxed);
  counters.bytes_read.fetch_add(static_cast<uint64_t>(total), std::memory_order_relaxed);
  return total;
}

// A libc result from a read's; over a mount a failure is FUSE's to repeat: it
// says the same, or serves what we could not.
template <class Original>
ssize_t finish(const OpenFileRef& file, ssize_t result, Original original) {
  if (result >= 0) return result;
  if (!file.on_stub()) {
    file->file_counters->left_to_fuse.fetch_add(1, std::memory_order_relaxed);
    return original();
  }
  errno = static_cast<int>(-result);
  return -1;
}

bool valid_vector(const iovec* iov, int count) {
  if (count < 0 || count > IOV_MAX) return false;
  size_t total = 0;
  for (int i = 0; i < count; ++i) {
    if (iov[i].iov_len > SSIZE_MAX - total) return false;
    total += iov[i].iov_len;
  }
  return true;
}

template <class Original>
ssize_t read_at(int fd, const iovec* iov, int count, off_t offset, Original original) {
  const OpenFileRef file = acquire(fd);
  // What the kernel would refuse, it shall refuse itself.
  if (!file || offset < 0 || !valid_vector(iov, count)) return original();
  return finish(file, read_vector(file, iov, count, static_cast<uint64_t>(offset)), original);
}

template <class Original>
ssize_t read_on(int fd, const iovec* iov, int count, Original original) {
  const OpenFileRef file = acquire(fd);
  if (!file || !valid_vector(iov, count)) return original();
  off_t wanted = 0;
  for (int i = 0; i < count; ++i) wanted += static_cast<off_t>(iov[i].iov_len);
  if (wanted > static_cast<off_t>(kReadMax)) wanted = kReadMax;
  const int saved_errno = errno;
  const off_t end = sys::lseek(fd, wanted, SEEK_CUR);
  if (end < 0) {
    errno = saved_errno;
    return original();
  }
  const ssize_t result = read_vector(file, iov, count, static_cast<uint64_t>(end - wanted));
  const off_t unread = wanted - (result > 0 ? result : 0);
  if (unread > 0) sys::lseek(fd, -unread, SEEK_CUR);
  return finish(file, result, original);
}

template <class Original>
ssize_t read_at(int fd, void* buffer, size_t count, off_t offset, Original original) {
  const iovec one{.iov_base = buffer, .iov_len = count < kReadMax ? count : kReadMax};
  return read_at(fd, &one, 1, offset, original);
}

template <class Original>
ssize_t read_on(int fd, void* buffer, size_t count, Original original) {
  const iovec one{.iov_base = buffer, .iov_len = count < kReadMax ? count : kReadMax};
  return read_on(fd, &one, 1, original);
}

// preadv2 with an offset of -1 reads at the file offset. Flags ask for what we
// cannot promise (RWF_NOWAIT), so over a mount they are FUSE's; a stub's
// descriptor has no one else.
template <class Original>
ssize_t read_flagged(int fd, const iovec* iov, int count, off_t offset, int flags,
                     Original original) {
  if (flags != 0 && !acquire_stub(fd)) return original();
  return offset == -1 ? read_on(fd, iov, count, original)
                      : read_at(fd, iov, count, offset, original);
}

}  // namespace
}  // namespace graphlane

using namespace graphlane;

ssize_t hook_read(int fd, void* buffer, size_t count) {
  return read_on(fd, buffer, count, [=] { return real::read(fd, buffer, count); });
}

ssize_t hook___read_chk(int fd, void* buffer, size_t count, size_t room) {
  const auto original = [=] { return real::__read_chk(fd, buffer, count, room); };
  return count > room ? original() : read_on(fd, buffer, count, original);
}

ssize_t hook_pread(int fd, void* buffer, size_t count, off_t offset) {
  return read_at(fd, buffer, count, offset, [=] { return real::pread(fd, buffer, count, offset); });
}

ssize_t hook_pread64(int fd, void* buffer, size_t count, off_t offset) {
  return hook_pread(fd, buffer, count, offset);
}

ssize_t hook___pread_chk(int fd, void* buffer, size_t count, off_t offset, size_t room) {
  const auto original = [=] { return real::__pread_chk(fd, buffer, count, offset, room); };
  return count > room ? original() : read_at(fd, buffer, count, offset, original);
}

ssize_t hook___pread64_chk(int fd, void* buffer, size_t count, off_t offset, size_t room) {
  return hook___pread_chk(fd, buffer, count, offset, room);
}

ssize_t hook_readv(int fd, const iovec* iov, int count) {
  return read_on(fd, iov, count, [=] { return real::readv(fd, iov, count); });
}

ssize_t hook_preadv(int fd, const iovec* iov, int count, off_t offset) {
  return read_at(fd, iov, count, offset, [=] { return real::preadv(fd, iov, count, offset); });
}

ssize_t hook_preadv64(int fd, const iovec* iov, int count, off_t offset) {
  return hook_preadv(fd, iov, count, offset);
}

ssize_t hook_preadv2(int fd, const iovec* iov, int count, off_t offset, int flags) {
  return read_flagged(fd, iov, count, offset, flags,
                      [=] { return real::preadv2(fd, iov, count, offset, flags); });
}

ssize_t hook_preadv64v2(int fd, const iovec* iov, int count, off_t offset, int flags) {
  return hook_preadv2(fd, iov, count, offset, flags);
}
