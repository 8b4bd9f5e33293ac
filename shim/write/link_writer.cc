#include "shim/write/link_writer.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

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
  // `tries`: how often it looks whether another thread has done.
  explicit Link(const OpenFile& file, uint32_t tries = 1) : file_(file), mine_(take(file, tries)) {}
  ~Link() {
    if (mine_) file_.link.busy.store(false, std::memory_order_release);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  explicit operator bool() const { return mine_; }

  // 0 or an errno. A server that does not answer is not asked again.
  template <class Question>
  int ask(const Question& question, WriteReply* reply) const {
    const long sent =
        ::syscall(SYS_sendto, file_.link.fd, &question, sizeof question, MSG_NOSIGNAL, nullptr, 0);
    const long got =
        sent != static_cast<long>(sizeof question)
            ? -1
            : ::syscall(SYS_recvfrom, file_.link.fd, reply, sizeof *reply, 0, nullptr, nullptr);
    if (got == static_cast<long>(sizeof *reply) && reply->magic == WriteReply::kMagic) {
      return reply->error;
    }
    ::syscall(SYS_shutdown, file_.link.fd, SHUT_RDWR);
    file_.lost.store(true, std::memory_order_relaxed);
    return EIO;
  }

 private:
  static bool take(const OpenFile& file, uint32_t tries) {
    if (file.link.epoch != process_epoch()) return false;
    for (uint32_t i = 0; i < tries; ++i) {
      if (i > 0) ::syscall(SYS_sched_yield);
      if (!file.link.busy.exchange(true, std::memory_order_acquire)) return true;
    }
    return false;
  }

  const OpenFile& file_;
  const bool mine_;
};

// So many small writes of a descriptor go through the kernel before the server is asked whether it
// may append. The number doubles after each append that ended early.
constexpr uint32_t kAppendPauseMin = 32, kAppendPauseMax = 4096;

// A thread looks so many times whether another one has ended its write, which takes microseconds.
constexpr uint32_t kAppendTries = 1000;

// Counts small writes of descriptors that are not linked yet. Several descriptors share one count.
std::atomic<uint32_t> small_writes[1024];

// Whether the kernel would write all of it with these flags and limits.
bool is_ordinary(int fd, uint64_t end) {
  const int flags = sys::fcntl(fd, F_GETFL);
  rlimit limit{};
  return flags >= 0 && (flags & (O_APPEND | O_DSYNC)) == 0 &&
         ::syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) == 0 && end <= limit.rlim_cur;
}

// Lets the kernel ask the mount for the size, which it does not know after a write past it.
void tell_kernel_size(int fd) {
  struct statx st;
  ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &st);
}

ssize_t write_parts(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count,
                    uint64_t size_bytes) {
  if (offset + count <= size_bytes && overwrite_striped(file, offset, buffer, count) == 0) {
    return static_cast<ssize_t>(count);
  }
  return write_in_order(file, offset, buffer, count);
}

// Bytes. None: FUSE writes, and says what is wrong.
std::optional<ssize_t> write_at(const OpenFileRef& file, int fd, const void* buffer, size_t count,
                                uint64_t offset) {
  const uint64_t end = offset + count;
  if (offset % kBlockSize != 0 || !is_ordinary(fd, end)) return std::nullopt;
  const Link link(*file);
  WriteReply before, after;
  if (!link || link.ask(WriteBegin{.offset = offset, .length_bytes = count}, &before) != 0) {
    return std::nullopt;
  }
  const ssize_t written = write_parts(file, offset, buffer, count, before.size_bytes);
  const uint64_t moved = written > 0 ? static_cast<uint64_t>(written) : 0;
  (void)link.ask(WriteEnd{.written_end = offset + moved}, &after);
  if (offset + moved > before.size_bytes) tell_kernel_size(fd);
  if (written < 0) return std::nullopt;
  file->file_counters->count_write(moved);
  return written;
}

// Whether the kernel need not see appends by this descriptor.
bool may_append(int fd) {
  return (sys::fcntl(fd, F_GETFL) & (O_ACCMODE | O_DSYNC | O_DIRECT)) == O_WRONLY;
}

// Whether it begins to pay to ask the server.
bool is_due(int fd) {
  std::atomic<uint32_t>& count = small_writes[fd % std::size(small_writes)];
  if (count.fetch_add(1, std::memory_order_relaxed) + 1 < kAppendPauseMin) return false;
  count.store(0, std::memory_order_relaxed);
  return may_append(fd);
}

// The server has ended the append, or refused one: the next question comes later. The kernel is told
// the size, which it needs for the file offset of a descriptor with O_APPEND.
bool pause_append(const OpenFile& file, int fd, bool longer) {
  const uint32_t next = longer ? 2 * file.link.append_pause : 0;
  file.link.append_pause = std::clamp(next, kAppendPauseMin, kAppendPauseMax);
  file.link.append_skips = file.link.append_pause;
  file.link.append_count = 0;
  if (file.link.append_fd.exchange(-1, std::memory_order_relaxed) >= 0) tell_kernel_size(fd);
  return false;
}

// Asks for an append that begins at the end of the file, wherever that is.
bool ask_to_append(const OpenFile& file, int fd, const Link& link) {
  rlimit limit{};
  WriteReply reply;
  if (!may_append(fd) || ::syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) != 0 ||
      link.ask(AppendBegin{.length_bytes = kAppendMax}, &reply) != 0) {
    return pause_append(file, fd, /*longer=*/true);
  }
  file.link.append_limit = std::min<uint64_t>(reply.size_bytes + kAppendMax, limit.rlim_cur);
  // Release: acquire_append() needs no more than that.
  file.link.append_fd.store(fd, std::memory_order_release);
  return true;
}

// Whether the descriptor may append. Asks, unless an append has ended a short while ago.
bool get_append(const OpenFile& file, int fd, const Link& link) {
  const bool had = file.link.append_fd.load(std::memory_order_relaxed) >= 0;
  if (had && file.link.progress->is_granted()) {
    // The file has one handle then, so a duplicate of the descriptor may append, too.
    file.link.append_fd.store(fd, std::memory_order_release);
    return true;
  }
  if (had)
    return pause_append(file, fd, /*longer=*/file.link.append_count < file.link.append_pause);
  if (file.link.append_skips > 0) return file.link.append_skips -= 1, false;
  return ask_to_append(file, fd, link);
}

// Whether the file ends at `begin`, and these bytes are the program's to write and to count.
bool take_place(const OpenFile& file, int fd, const Link& link, uint64_t begin, size_t count) {
  if (begin != file.link.progress->end()) return false;
  if (begin + count > file.link.append_limit && !ask_to_append(file, fd, link)) return false;
  return begin + count <= file.link.append_limit && file.link.progress->take(begin);
}

// Whether there is a server that keeps other writers away.
bool is_served(const OpenFile& file) {
  const uint32_t owner = file.link.life->load(std::memory_order_acquire);
  return (owner & FUTEX_TID_MASK) != 0 && (owner & FUTEX_OWNER_DIED) == 0;
}

// Bytes. None: FUSE writes, and says what is wrong.
std::optional<ssize_t> append_at(const OpenFileRef& file, int fd, const Link& link,
                                 const void* buffer, size_t count, uint64_t begin) {
  if (!take_place(*file, fd, link, begin, count)) return std::nullopt;
  const ssize_t written = is_served(*file) ? write_in_order(file, begin, buffer, count) : -1;
  const uint64_t moved = written > 0 ? static_cast<uint64_t>(written) : 0;
  const bool counts = file->link.progress->give_back(moved);
  file->link.append_count += 1;
  if (!counts || moved == 0) return std::nullopt;
  file->file_counters->count_write(moved);
  return written;
}

// Writes through the kernel, at the place that was reserved. To move the file offset back instead
// would be wrong: another process may have moved it since. Bytes or -errno.
ssize_t write_reserved(int fd, const void* buffer, size_t count, const Reserved& range) {
  const iovec one{.iov_base = const_cast<void*>(buffer), .iov_len = count};
  const ssize_t written = sys::pwritev(fd, &one, 1, range.begin());
  const ssize_t result = written < 0 ? -errno : written;
  range.settle(result);
  return result;
}

bool has_append_flag(int fd) { return (sys::fcntl(fd, F_GETFL) & O_APPEND) != 0; }

// As append_at(), at the file offset, which moves. Bytes or -errno.
std::optional<ssize_t> append_at_offset(const OpenFileRef& file, int fd, const Link& link,
                                        const void* buffer, size_t count) {
  const Reserved range(fd, count);
  if (!range) return std::nullopt;
  if (const auto written = append_at(file, fd, link, buffer, count, range.begin())) {
    range.settle(*written);
    return written;
  }
  if (!has_append_flag(fd)) return write_reserved(fd, buffer, count, range);
  // The file offset says nothing about the end.
  range.settle(0);
  const uint64_t end = file->link.progress->end();
  const auto written = append_at(file, fd, link, buffer, count, end);
  if (written) sys::lseek(fd, static_cast<off_t>(end) + *written, SEEK_SET);
  return written;
}

std::optional<ssize_t> append(const OpenFileRef& file, int fd, const void* buffer, size_t count,
                              off_t offset) {
  const BlockedSignals signals;
  const Link link(*file, kAppendTries);
  if (!link || !get_append(*file, fd, link)) return std::nullopt;
  if (offset == kAtFileOffset) return append_at_offset(file, fd, link, buffer, count);
  return append_at(file, fd, link, buffer, count, static_cast<uint64_t>(offset));
}

// As append_at_offset(), for a large write.
std::optional<ssize_t> write_at_offset(const OpenFileRef& file, int fd, const void* buffer,
                                       size_t count) {
  const Reserved range(fd, count);
  if (!range) return std::nullopt;
  const auto written = write_at(file, fd, buffer, count, range.begin());
  if (!written && !has_append_flag(fd)) return write_reserved(fd, buffer, count, range);
  range.settle(written.value_or(0));
  return written;
}

}  // namespace

bool write_past_kernel(int fd, const void* buffer, size_t count, off_t offset, ssize_t* result) {
  if (count < kPastKernelMin || count % kBlockSize != 0 || count > kMovedMax) return false;
  const OpenFileRef file = acquire_link(fd);
  if (!file) return false;
  const BlockedSignals signals;
  const int saved_errno = errno;
  const auto written = offset == kAtFileOffset
                           ? write_at_offset(file, fd, buffer, count)
                           : write_at(file, fd, buffer, count, static_cast<uint64_t>(offset));
  errno = saved_errno;
  if (written) *result = *written;
  return written.has_value();
}

bool append_past_kernel(int fd, const void* buffer, size_t count, off_t offset, ssize_t* result) {
  if (count == 0 || count > kAppendMax) return false;
  if (fd_table.load(fd) == FdEntry::mounted() && !is_due(fd)) return false;
  const int saved_errno = errno;
  std::optional<ssize_t> written;
  if (const OpenFileRef granted = acquire_append(fd)) {
    written = append(granted, fd, buffer, count, offset);
  } else if (const OpenFileRef file = acquire_link(fd)) {
    written = append(file, fd, buffer, count, offset);
  }
  errno = saved_errno;
  if (written) *result = *written;
  return written.has_value();
}

}  // namespace graphlane::shim
