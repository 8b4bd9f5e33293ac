#include "iomgr/base/files/file_io.h"

#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

// Repeats transfer(done) until it has moved `length` bytes, returns 0, or fails.
template <class Transfer>
Result<size_t> repeat(size_t length, Transfer transfer) {
  size_t done = 0;
  while (done < length) {
    const ssize_t n = transfer(done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return last_errno();
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

// A short write without an error is EIO, because a retry could loop for ever.
Result<void> all_written(Result<size_t> done, size_t length) {
  if (!done) return done.error();
  if (*done < length) return Errno{EIO};
  return {};
}

}  // namespace

Result<size_t> pread_full(int fd, void* buffer, size_t length, uint64_t offset) {
  return repeat(length, [&](size_t done) {
    return sys::pread(fd, static_cast<char*>(buffer) + done, length - done, offset + done);
  });
}

Result<size_t> read_full(int fd, void* buffer, size_t length) {
  return repeat(length, [&](size_t done) {
    return sys::read(fd, static_cast<char*>(buffer) + done, length - done);
  });
}

Result<void> pwrite_full(int fd, const void* buffer, size_t length, uint64_t offset) {
  return all_written(repeat(length,
                            [&](size_t done) {
                              return sys::pwrite(fd, static_cast<const char*>(buffer) + done,
                                                 length - done, offset + done);
                            }),
                     length);
}

Result<void> write_full(int fd, const void* buffer, size_t length) {
  return all_written(repeat(length,
                            [&](size_t done) {
                              return sys::write(fd, static_cast<const char*>(buffer) + done,
                                                length - done);
                            }),
                     length);
}

}  // namespace graphlane
