#include "shim/share/shared_reader.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/futex.h"
#include "iomgr/base/memory_order.h"
#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/process/memory_map.h"
#include "iomgr/base/slot_pool.h"
#include "iomgr/base/sys.h"
#include "iomgr/read/plan.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/volume/parts/lane_io.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "shim/base/process.h"
#include "shim/base/settings.h"
#include "shim/base/slow_lock.h"
#include "shim/fd/open_file.h"
#include "shim/read/queues.h"
#include "shim/read/read_cache.h"
#include "shim/share/mapped_pages.h"

namespace graphlane::shim {
namespace {

// The most bytes asked for at a time: the server keeps them in memory while they are copied.
constexpr uint64_t kWindow = 12 * kExtentFrameBytes;
static_assert(kWindow / kExtentFrameBytes < 64, "a bit a frame");

// How often the free memory is checked for a file that is read through the page cache. By the
// clock, because reads may be slow for lack of memory.
constexpr int64_t kLookIntervalMs = 100;

int64_t now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

std::atomic<uint64_t> bytes_read{0};

// The number of links; more threads than that wait for each other.
uint32_t links_wanted() {
  uint64_t cpus[128] = {};
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
  uint32_t count = 0;
  for (long i = 0; i < bytes / 8; ++i) {
    count += static_cast<uint32_t>(__builtin_popcountll(cpus[i]));
  }
  return std::clamp(count, 1u, SharedReader::kLinksMax);
}

class BorrowedLink {
 public:
  explicit BorrowedLink(const SharedReader& reader) : reader_(reader), link_(wait_for_link()) {}
  ~BorrowedLink() {
    if (link_ == nullptr) return;
    free_slot(*link_);
    reader_.links_freed.fetch_add(1);
    if (reader_.waiting.load() == 0) return;
    futex_wake(reader_.links_freed, reader_.dead.load(relaxed) ? INT_MAX : 1);
  }
  BorrowedLink(const BorrowedLink&) = delete;
  BorrowedLink& operator=(const BorrowedLink&) = delete;
  // False: the server does not answer the threads that have the links.
  explicit operator bool() const { return link_ != nullptr; }

  bool tell(uint32_t magic, ByteRange range) const {
    const ShareMessage message{
        .magic = magic, .offset = range.offset, .length_bytes = range.length_bytes};
    const int flags = MSG_NOSIGNAL | (magic == ShareMessage::kPassed ? MSG_DONTWAIT : 0);
    long sent;
    do sent = ::syscall(SYS_sendto, link_->fd, &message, sizeof message, flags, nullptr, 0);
    while (sent < 0 && errno == EINTR);  // the process was stopped (signal(7)), as below
    return sent == static_cast<long>(sizeof message);
  }
  // The server's answer to kFetch: 0 or an errno; ETIMEDOUT: no answer.
  int answer() const {
    ShareReply reply;
    long received;
    do received = ::syscall(SYS_recvfrom, link_->fd, &reply, sizeof reply, 0, nullptr, nullptr);
    while (received < 0 && errno == EINTR);
    const bool sensible =
        received == static_cast<long>(sizeof reply) && reply.magic == ShareReply::kMagic;
    return sensible ? reply.error : ETIMEDOUT;
  }

 private:
  SharedReader::Link* wait_for_link() const {
    SharedReader::Link* link = take_free_slot(reader_.links);
    if (link != nullptr) return link;
    reader_.waiting.fetch_add(1);
    while (!reader_.dead.load(relaxed)) {
      const uint32_t freed = reader_.links_freed.load();
      link = take_free_slot(reader_.links);
      if (link != nullptr) break;
      futex_wait(reader_.links_freed, freed);
    }
    reader_.waiting.fetch_sub(1);
    return link;
  }

  const SharedReader& reader_;
  SharedReader::Link* const link_;
};

// A part of the range, of at most kWindow.
class Window {
 public:
  Window(const OpenFile& file, ByteRange range, char* buffer, Fill fill)
      : file_(file),
        range_(range),
        buffer_(buffer),
        fill_(fill),
        first_(range.offset / kExtentFrameBytes) {
    const uint64_t count = (range.end() - 1) / kExtentFrameBytes + 1 - first_;
    missing_ = (uint64_t{1} << count) - 1;
  }

  // Copies or maps the missing frames that are in memory now. `waits`: also those that the kernel
  // has reclaimed since the server fetched them. Returns whether all are done.
  bool take(bool waits) {
    const auto take_range = fill_ == Fill::kMap ? show_range : copy_range;
    for (uint64_t left = missing_; left != 0; left &= left - 1) {
      const auto i = static_cast<uint64_t>(__builtin_ctzll(left));
      const uint64_t begin = std::max(range_.offset, (first_ + i) * kExtentFrameBytes);
      const uint64_t end = std::min(range_.end(), (first_ + i + 1) * kExtentFrameBytes);
      const ByteRange piece{.offset = begin, .length_bytes = end - begin};
      if (file_.sharing.frames.has(first_ + i) &&
          take_range(file_, piece, buffer_ + (begin - range_.offset), waits)) {
        missing_ &= ~(uint64_t{1} << i);
      }
    }
    return missing_ == 0;
  }

 private:
  const OpenFile& file_;
  const ByteRange range_;
  char* const buffer_;
  const Fill fill_;
  const uint64_t first_;
  uint64_t missing_;
};

bool read_window(const OpenFile& file, ByteRange range, char* buffer, Fill fill) {
  constexpr int kTries = 3;  // fetched frames may be reclaimed again
  const SharedReader& reader = file.sharing;
  Window window(file, range, buffer, fill);
  bool all = window.take(false);
  const BorrowedLink link(reader);
  if (!link) return all;
  for (int i = 0; i < kTries && !all; ++i) {
    const int error = link.tell(ShareMessage::kFetch, range) ? link.answer() : ETIMEDOUT;
    if (error == ETIMEDOUT) reader.dead.store(true, relaxed);
    if (error != 0) return false;
    all = window.take(true);
  }
  if (all) (void)link.tell(ShareMessage::kPassed, range);
  return all;
}

// The server has verified the pages, but the kernel may have evicted them and read them again.
bool matches_sums(const OpenFileRef& file, ByteRange range, char* buffer) {
  const Piece piece{.range = range, .buffer = buffer};
  return verify_pieces({.map = file->map,
                        .parts = *file->parts,
                        .size_bytes = file.size(),
                        .pieces = {&piece, 1}}) == 0;
}

// Uses a reader's state, which stays unchanged meanwhile; false: it is being replaced.
class Use {
 public:
  // Acquire: a user after a replacement sees it.
  explicit Use(const SharedReader& reader)
      : users_(reader.users), is_open_(users_.fetch_add(1, std::memory_order_acquire) >= 0) {}
  // Release: a replacement comes after all uses.
  ~Use() { users_.fetch_sub(1, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const { return is_open_; }

 private:
  std::atomic<int32_t>& users_;
  const bool is_open_;
};

// Asks again, once for each settled state of the file: a server may have frames of that state.
void ask_anew(const OpenFileRef& file) {
  SharedReader& reader = file->sharing;
  const int64_t ctime_ns = file.ctime_ns();
  const auto is_asked = [&] { return reader.asked_ctime_ns.load(relaxed) == ctime_ns; };
  if (is_asked() || !settings().shares || file->stub.fd < 0 || file.content_generation() == 0) {
    return;
  }
  if (in_vfork_child()) return;  // the connections would be the child's, not this process's
  const SlowLockGuard lock(slow_lock);
  int32_t none = 0;
  if (!lock || is_asked() ||
      !reader.users.compare_exchange_strong(none, SharedReader::kBusy, std::memory_order_acquire)) {
    return;
  }
  reader.end();
  reader.begin(ask_volume_to_share, file->stub.fd, static_cast<uint64_t>(ctime_ns), file.size());
  if (wants_permit(*file)) {
    Fd permit = reopen(file->stub.fd, O_RDONLY);
    if (permit && lock_to_map(permit.get())) permit_mapping(*file, std::move(permit));
  }
  reader.asked_ctime_ns.store(ctime_ns, relaxed);
  reader.users.fetch_sub(SharedReader::kBusy, std::memory_order_release);
}

// Whether memory has room for the file and, as far as a server knows, for all other files that are
// read.
bool has_room(const OpenFileRef& file) {
  const IoMode mode = settings().io_mode;
  if (mode == IoMode::kBuffered) return true;
  if (fit_now(mode, file.size()) == MemoryFit::kNot) return false;
  if (!is_first_process()) return true;
  if (file->origin == Origin::kStub) ask_anew(file);
  const BlockedSignals signals;
  const Use use(file->sharing);
  return !use || !file->sharing.frames || file->sharing.frames.header().crowded.load(relaxed) == 0;
}

}  // namespace

void SharedReader::begin(ShareAnswer (*ask)(int), int fd, uint64_t generation,
                         uint64_t size_bytes) {
  dead.store(false, relaxed);
  const uint32_t wanted = links_wanted();
  while (link_count < wanted) {
    ShareAnswer answer = ask(fd);
    if (!answer.connection || answer.generation != generation) return;
    if (!frames && !frames.map(answer.frames.get(), size_bytes)) return;
    Link& link = links[link_count];
    link.fd = keep_internal(std::move(answer.connection));
    free_slot(link);
    link_count += 1;
  }
}

void SharedReader::end() {
  for (uint32_t i = 0; i < link_count; ++i) {
    links[i].taken.store(true, relaxed);
    drop_internal(links[i].fd);
  }
  link_count = 0;
  frames.unmap();
  asked_ctime_ns.store(0, relaxed);
}

bool is_read_by_others(const OpenFile& file) {
  if (file.sharing.link_count.load(relaxed) == 0) return false;
  const BlockedSignals signals;
  const Use use(file.sharing);
  return use && file.sharing.frames && file.sharing.frames.header().process_count.load(relaxed) > 1;
}

bool may_share(const OpenFile& file) {
  return file.origin == Origin::kStub || file.sharing.link_count.load(relaxed) > 0;
}

MemoryFit fit_beside_others(const OpenFileRef& file) {
  const SharedReader& reader = file->sharing;
  int64_t looked = reader.looked_ms.load(relaxed);
  const int64_t now = now_ms();
  if (now - looked >= kLookIntervalMs &&
      reader.looked_ms.compare_exchange_strong(looked, now, relaxed)) {
    reader.fits.store(has_room(file), relaxed);
  }
  return reader.fits.load(relaxed) ? MemoryFit::kOnce : MemoryFit::kNot;
}

std::optional<size_t> read_shared(const OpenFileRef& file, ByteRange range, void* buffer,
                                  IoEngine& engine) {
  SharedReader& reader = file->sharing;
  if (!is_first_process()) return {};
  if (file->origin == Origin::kStub) ask_anew(file);
  if (reader.link_count.load(relaxed) == 0) return {};
  const BlockedSignals signals;  // a handler may also read, and leave by siglongjmp()
  const Use use(reader);
  if (!use || reader.link_count.load(relaxed) == 0) return {};
  const SharedHeader& header = reader.frames.header();
  const bool shares = !reader.dead.load(relaxed) && header.process_count.load(relaxed) > 1 &&
                      header.content_time_ns == file.ctime_ns() && file.content_generation() != 0;
  follow_sharing(shares, now_ms(), engine);
  const uint64_t size = file.size();
  const uint64_t left = range.offset < size ? size - range.offset : 0;
  range.length_bytes = std::min(range.length_bytes, left);
  if (shares && range.length_bytes == 0) return 0;
  const Fill fill = prepare_buffer(*file, buffer, range.length_bytes, shares);
  if (!shares) return {};
  if (fill == Fill::kCopy && !populate_writable(buffer, range.length_bytes)) return {};
  for (uint64_t at = range.offset; at < range.end();) {
    const uint64_t window_end = at / kExtentFrameBytes * kExtentFrameBytes + kWindow;
    const uint64_t end = std::min(range.end(), window_end);
    const ByteRange window{.offset = at, .length_bytes = end - at};
    char* const to = static_cast<char*>(buffer) + (at - range.offset);
    if (!read_window(*file, window, to, fill) || !matches_sums(file, window, to)) return {};
    at = end;
  }
  bytes_read.fetch_add(range.length_bytes, relaxed);
  return range.length_bytes;
}

uint64_t shared_bytes() { return bytes_read.load(relaxed); }

}  // namespace graphlane::shim
