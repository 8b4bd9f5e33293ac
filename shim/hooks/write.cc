// Writes, size changes and syncs of a striped file. Without a mount the library does them. Over a
// mount FUSE does, except for large writes (link_writer.h).
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/uio.h>

#include "shim/base/report.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/locate/stub_open.h"
#include "shim/write/link_writer.h"
#include "shim/write/writer.h"

namespace graphlane::shim {
namespace {

// RWF_APPEND and RWF_NOWAIT by number: Debian 12's headers lack one of them.
constexpr int kRwfDsync = 0x2, kRwfSync = 0x4, kRwfNowait = 0x8, kRwfAppend = 0x10;

// Note that O_SYNC contains the bit of O_DSYNC.
int sync_as_asked(const OpenFileRef& file, int fd, int open_flags, int rwf_flags) {
  const bool all = (open_flags & O_SYNC) == O_SYNC || (rwf_flags & kRwfSync) != 0;
  if (!all && (open_flags & O_DSYNC) == 0 && (rwf_flags & kRwfDsync) == 0) return 0;
  return sync_striped(file, fd, !all);
}

// Bytes or -errno.
ssize_t write_at_offset(const OpenFileRef& file, int fd, const Memory& memory, off_t offset) {
  const int flags = sys::fcntl(fd, F_GETFL);
  const bool append = (flags & O_APPEND) != 0 || (memory.flags & kRwfAppend) != 0;
  if ((memory.flags & kRwfNowait) != 0) return -EOPNOTSUPP;
  const size_t wanted = wanted_bytes(memory);
  if (offset > LLONG_MAX - static_cast<off_t>(wanted)) return -EFBIG;
  ssize_t written = 0;
  if (offset != kAtFileOffset || append) {
    auto at = static_cast<uint64_t>(offset);
    written = write_striped(file, memory, append, &at);
    if (offset == kAtFileOffset && written > 0) {
      sys::lseek(fd, static_cast<off_t>(at) + written, SEEK_SET);
    }
  } else {
    const Reserved range(fd, wanted);
    if (!range) return -EFBIG;
    uint64_t at = range.begin();
    written = write_striped(file, memory, false, &at);
    range.settle(written);
  }
  if (written <= 0) return written;
  const int error = sync_as_asked(file, fd, flags, memory.flags);
  return error == 0 ? written : -error;
}

// Whether a descriptor of a stub may be written: 0 or an errno.
int write_error(const OpenFileRef& file) {
  if (file->origin == Origin::kDamaged) return file->error;
  return may_write(file.access()) ? 0 : EBADF;
}

Attempt attempt_write(int fd, const Memory& memory, off_t offset, ssize_t* result) {
  const OpenFileRef file = acquire_stub(fd);
  if (!file) return Attempt::kDeclined;
  int error = write_error(file);
  if (error == 0) error = argument_error(*file, memory);
  *result = error != 0 ? -error : write_at_offset(file, fd, memory, offset);
  const bool lost = *result == -ESTALE || *result == -EBADF;
  if (error == 0 && lost && !file->lost.exchange(true, std::memory_order_relaxed)) {
    return Attempt::kLost;
  }
  return Attempt::kDone;
}

template <class Original>
ssize_t write_memory(int fd, const Memory& memory, off_t offset, Original original) {
  const bool foreign = is_known_foreign(fd);
  if (offset < kAtFileOffset) return original();
  pthread_testcancel();
  ssize_t result = 0;
  const bool linked = !memory.is_vector && may_be_linked(fd);
  const iovec* const one = memory.iov;
  if (!linked || !append_past_kernel(fd, one->iov_base, one->iov_len, offset, &result)) {
    Attempt outcome = foreign ? Attempt::kDeclined : attempt_write(fd, memory, offset, &result);
    if (outcome == Attempt::kLost) outcome = attempt_write(fd, memory, offset, &result);
    if (outcome == Attempt::kDeclined) {
      // attempt_write() may have identified the descriptor.
      if (memory.is_vector || !may_be_linked(fd) ||
          !write_past_kernel(fd, one->iov_base, one->iov_len, offset, &result)) {
        return original();
      }
    }
  }
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// As read_one() in hooks/read.cc, and so on.
template <auto kOriginal, class... Rest>
[[gnu::noinline]] ssize_t write_one_slowly(int fd, const void* buffer, size_t count, off_t offset,
                                           Rest... rest) {
  const iovec one{.iov_base = const_cast<void*>(buffer), .iov_len = count};
  return write_memory(fd, {.iov = &one, .count = 1}, offset,
                      [=] { return kOriginal(fd, buffer, count, rest...); });
}

template <auto kOriginal, class... Rest>
[[gnu::noinline]] ssize_t write_many_slowly(int fd, const iovec* iov, int count, off_t offset,
                                            int flags, Rest... rest) {
  return write_memory(fd, {.iov = iov, .count = count, .flags = flags, .is_vector = true}, offset,
                      [=] { return kOriginal(fd, iov, count, rest...); });
}

bool is_kernels(int fd) { return is_known_foreign(fd) && !may_be_linked(fd); }

template <auto kOriginal, class... Rest>
ssize_t write_one(int fd, const void* buffer, size_t count, off_t offset, Rest... rest) {
  if (is_kernels(fd)) return kOriginal(fd, buffer, count, rest...);
  return write_one_slowly<kOriginal>(fd, buffer, count, offset, rest...);
}

template <auto kOriginal, class... Rest>
ssize_t write_many(int fd, const iovec* iov, int count, off_t offset, int flags, Rest... rest) {
  if (is_kernels(fd)) return kOriginal(fd, iov, count, rest...);
  return write_many_slowly<kOriginal>(fd, iov, count, offset, flags, rest...);
}

// Whether the descriptor is a stub's. If so, makes the change; *error is 0 or an errno.
template <class Change>
bool change_stub(int fd, int* error, Change change) {
  const OpenFileRef file = acquire_stub(fd);
  if (!file) return false;
  *error = write_error(file);
  if (*error == 0) *error = change(file);
  return true;
}

int status_of(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

bool allocate(int fd, int mode, off_t offset, off_t length, int* error) {
  return change_stub(fd, error, [=](const OpenFileRef& file) {
    if (offset < 0 || length <= 0) return EINVAL;
    return allocate_striped(
        file, mode,
        {.offset = static_cast<uint64_t>(offset), .length_bytes = static_cast<uint64_t>(length)});
  });
}

template <class Sync>
bool sync(int fd, int* error, Sync how) {
  const OpenFileRef file = acquire_stub(fd);
  if (!file) return false;
  *error = file->origin == Origin::kDamaged ? file->error : how(file);
  return true;
}

bool sync(int fd, bool data_only, int* error) {
  return sync(fd, error,
              [=](const OpenFileRef& file) { return sync_striped(file, fd, data_only); });
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

ssize_t hook_write(int fd, const void* buffer, size_t count) {
  return write_one<real::write>(fd, buffer, count, kAtFileOffset);
}

ssize_t hook___write(int fd, const void* buffer, size_t count) {
  return hook_write(fd, buffer, count);
}

ssize_t hook_pwrite(int fd, const void* buffer, size_t count, off_t offset) {
  if (offset < 0) return real::pwrite(fd, buffer, count, offset);
  return write_one<real::pwrite>(fd, buffer, count, offset, offset);
}

ssize_t hook_pwrite64(int fd, const void* buffer, size_t count, off_t offset) {
  return hook_pwrite(fd, buffer, count, offset);
}

ssize_t hook___pwrite64(int fd, const void* buffer, size_t count, off_t offset) {
  return hook_pwrite(fd, buffer, count, offset);
}

ssize_t hook_writev(int fd, const iovec* iov, int count) {
  return write_many<real::writev>(fd, iov, count, kAtFileOffset, 0);
}

ssize_t hook_pwritev(int fd, const iovec* iov, int count, off_t offset) {
  if (offset < 0) return real::pwritev(fd, iov, count, offset);
  return write_many<real::pwritev>(fd, iov, count, offset, 0, offset);
}

ssize_t hook_pwritev64(int fd, const iovec* iov, int count, off_t offset) {
  return hook_pwritev(fd, iov, count, offset);
}

ssize_t hook_pwritev2(int fd, const iovec* iov, int count, off_t offset, int flags) {
  return write_many<real::pwritev2>(fd, iov, count, offset, flags, offset, flags);
}

ssize_t hook_pwritev64v2(int fd, const iovec* iov, int count, off_t offset, int flags) {
  return hook_pwritev2(fd, iov, count, offset, flags);
}

int hook_truncate(const char* path, off_t length) {
  int status = 0;
  return truncate_stub(path, length, &status) ? status : real::truncate(path, length);
}

int hook_truncate64(const char* path, off_t length) { return hook_truncate(path, length); }

int hook_ftruncate(int fd, off_t length) {
  int error = 0;
  const bool ours = change_stub(fd, &error, [=](const OpenFileRef& file) {
    return length < 0 ? EINVAL : resize_striped(file, static_cast<uint64_t>(length));
  });
  if (!ours) return real::ftruncate(fd, length);
  return status_of(error == EBADF ? EINVAL : error);  // as ftruncate(2) does
}

int hook_ftruncate64(int fd, off_t length) { return hook_ftruncate(fd, length); }

int hook_fallocate(int fd, int mode, off_t offset, off_t length) {
  int error = 0;
  if (!allocate(fd, mode, offset, length, &error)) return real::fallocate(fd, mode, offset, length);
  return status_of(error);
}

int hook_fallocate64(int fd, int mode, off_t offset, off_t length) {
  return hook_fallocate(fd, mode, offset, length);
}

// Returns its error, and does not set errno.
int hook_posix_fallocate(int fd, off_t offset, off_t length) {
  int error = 0;
  return allocate(fd, 0, offset, length, &error) ? error
                                                 : real::posix_fallocate(fd, offset, length);
}

int hook_posix_fallocate64(int fd, off_t offset, off_t length) {
  return hook_posix_fallocate(fd, offset, length);
}

int hook_fsync(int fd) {
  int error = 0;
  return sync(fd, false, &error) ? status_of(error) : real::fsync(fd);
}

int hook_fdatasync(int fd) {
  int error = 0;
  return sync(fd, true, &error) ? status_of(error) : real::fdatasync(fd);
}

// Syncs the filesystems of the file's parts, then the stub's.
int hook_syncfs(int fd) {
  int error = 0;
  if (sync(fd, &error, sync_filesystems) && error != 0) return status_of(error);
  return real::syncfs(fd);
}
