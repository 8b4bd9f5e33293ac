#include "shim/write/link_writer.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/server/server_protocol.h"
#include "shim/base/process.h"
#include "shim/base/report.h"
#include "shim/fd/request.h"
#include "shim/read/transfer.h"

namespace graphlane::shim {
namespace {

// Borrows the connection for one write, if this process has opened it.
class Link {
 public:
  explicit Link(const OpenFile& file)
      : file_(file),
        mine_(file.link_epoch == process_epoch() &&
              !file.link_busy.exchange(true, std::memory_order_acquire)) {}
  ~Link() {
    if (mine_) file_.link_busy.store(false, std::memory_order_release);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  explicit operator bool() const { return mine_; }

  // 0 or an errno. A server that does not answer is not asked again.
  template <class Question>
  int ask(const Question& question, WriteReply* reply) const {
    const long sent =
        ::syscall(SYS_sendto, file_.link_fd, &question, sizeof question, MSG_NOSIGNAL, nullptr, 0);
    const long got =
        sent != static_cast<long>(sizeof question)
            ? -1
            : ::syscall(SYS_recvfrom, file_.link_fd, reply, sizeof *reply, 0, nullptr, nullptr);
    if (got == static_cast<long>(sizeof *reply) && reply->magic == WriteReply::kMagic) {
      return reply->error;
    }
    ::syscall(SYS_shutdown, file_.link_fd, SHUT_RDWR);
    file_.lost.store(true, std::memory_order_relaxed);
    return EIO;
  }

 private:
  const OpenFile& file_;
  const bool mine_;
};

// Whether the kernel would write all of it with these flags and limits.
bool is_ordinary(int fd, uint64_t end) {
  const int flags = sys::fcntl(fd, F_GETFL);
  rlimit limit{};
  return flags >= 0 && (flags & (O_APPEND | O_DSYNC)) == 0 &&
         ::syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) == 0 && end <= limit.rlim_cur;
}

ssize_t write_parts(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count,
                    uint64_t size_bytes) {
  if (offset + count <= size_bytes && overwrite_striped(file, offset, buffer, count) == 0) {
    return static_cast<ssize_t>(count);
  }
  return write_in_order(file, offset, buffer, count);
}

// The bytes, or -1: not possible.
ssize_t write_at(const OpenFileRef& file, int fd, const void* buffer, size_t count,
                 uint64_t offset) {
  const uint64_t end = offset + count;
  if (offset % kBlockSize != 0 || !is_ordinary(fd, end)) return -1;
  const Link link(*file);
  WriteReply before, after;
  if (!link || link.ask(WriteBegin{.offset = offset, .length_bytes = count}, &before) != 0) {
    return -1;
  }
  const ssize_t written = write_parts(file, offset, buffer, count, before.size_bytes);
  const auto moved = static_cast<uint64_t>(std::max<ssize_t>(written, 0));
  (void)link.ask(WriteEnd{.written_end = offset + moved}, &after);
  if (offset + moved > before.size_bytes) {  // tells the kernel the new size
    struct statx st;
    ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &st);
  }
  return written;
}

}  // namespace

bool write_past_kernel(int fd, const void* buffer, size_t count, off_t offset, ssize_t* result) {
  if (count < kPastKernelMin || count % kBlockSize != 0 || count > kMovedMax) return false;
  const OpenFileRef file = acquire_link(fd);
  if (!file) return false;
  const BlockedSignals signals;
  const int saved_errno = errno;
  if (offset != kAtFileOffset) {
    *result = write_at(file, fd, buffer, count, static_cast<uint64_t>(offset));
  } else if (const Reserved range(fd, count); range) {
    *result = write_at(file, fd, buffer, count, range.begin());
    range.settle(*result);
  } else {
    *result = -1;
  }
  errno = saved_errno;
  if (*result < 0) return false;  // FUSE reports the error
  file->file_counters->count_write(static_cast<uint64_t>(*result));
  return true;
}

}  // namespace graphlane::shim
