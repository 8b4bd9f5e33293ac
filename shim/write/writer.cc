#include "shim/write/writer.h"

#include <linux/falloc.h>
#include <sys/file.h>

#include <algorithm>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/volume/parts/promises.h"
#include "shim/base/report.h"
#include "shim/read/transfer.h"
#include "shim/write/told_changes.h"

namespace graphlane::shim {
namespace {

// Opens the part's own open file description, whatever its mode permits now.
Fd open_again(int part) {
  Fd again = reopen(part, O_RDONLY);
  return lifted(again || errno != EACCES ? std::move(again) : reopen(part, O_WRONLY));
}

// Blocks signals, as they wait for a file's write; keeps errno.
struct Quietly {
  const BlockedSignals signals;
  const int saved_errno = errno;
  ~Quietly() { errno = saved_errno; }
};

// Waits in a way that a signal can end, because any process that may read the part can hold this
// lock for an unlimited time. 0 or an errno.
int lock_size(int part, const BlockedSignals& signals) {
  constexpr int64_t kPauseMin = 100'000, kPauseMax = 5'000'000;  // ns
  for (int64_t pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
    if (::syscall(SYS_flock, part, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno != EWOULDBLOCK && errno != EINTR) return errno;
    signals.pause(pause);
  }
}

// Call it before bytes change: voids their checksums, durably. 0 or an errno.
int mark_range(const OpenFile& file, ByteRange range) {
  for (uint32_t d = 0; d < file.parts->count(); ++d) {
    const int error = file.parts->sums().mark(d, file.parts->buffered(d), file.map.run(d, range));
    if (error != 0) return error;
  }
  return 0;
}

// Call it before the file becomes shorter. 0 or an errno.
int cut_sums(const OpenFile& file, uint64_t size) {
  for (uint32_t d = 0; d < file.parts->count(); ++d) {
    if (const int error = file.parts->sums().cut(d, file.map.part_size(d, size)); error != 0) {
      return error;
    }
  }
  return 0;
}

int sync_sums(const OpenFile& file) {
  for (uint32_t d = 0; d < file.parts->count(); ++d) {
    if (const int error = file.parts->sums().sync(d); error != 0) return error;
  }
  return 0;
}

// The right to change the size, and the stub's content meanwhile.
class SizeChange {
 public:
  // `signals` null: fails if another process has the right (EWOULDBLOCK).
  SizeChange(const OpenFile& file, const BlockedSignals* signals)
      : file_(file), lock_(open_again(file.parts->buffered(0))) {
    error_ = lock_ ? 0 : errno;
    if (lock_ && signals != nullptr) {
      error_ = lock_size(lock_.get(), *signals);
    } else if (lock_ && ::syscall(SYS_flock, lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      error_ = errno;
    }
    if (error_ != 0) return;
    const auto verdict = read_stub(file.stub.fd, kStubSize, &layout_);
    if (!verdict) {
      error_ = verdict.error().code;
    } else if (*verdict != StubVerdict::kStub || layout_.file_id != file.file_id) {
      error_ = ESTALE;
    } else {
      size_ =
          is_open() ? std::min(layout_.logical_size, size_of_parts(file)) : layout_.logical_size;
    }
    if (error_ == 0 && file.stub.is_written &&
        file.stub.bytes_max.load(std::memory_order_relaxed) != kNoBound) {
      cut_unwritten();
    }
  }

  int error() const { return error_; }
  bool says_open() const { return is_open(); }
  uint64_t size() const { return size_; }  // bytes

  // From now on the parts tell the size. 0 or an errno, as all below.
  int allow_growth() {
    if (const int error = mark_range(file_, {}); error != 0) return error;
    if (const int error = even_out(); error != 0) return error;
    return say(kNoBound);
  }

  // Extends the file with a hole. While the parts grow, the old size is the bound.
  int grow(uint64_t size) {
    int error = mark_range(file_, {});
    if (error == 0) error = even_out();
    if (error == 0) error = say(size_);
    if (error == 0) error = set_part_sizes(size);
    if (error != 0) {
      (void)set_part_sizes(size_);
      return error;
    }
    size_ = size;
    return say(kNoBound);
  }

  // Records that the parts are durable.
  int say_synced() {
    layout_.is_new = false;
    const Result<void> said = rewrite_stub(file_.stub.fd, layout_);
    return said ? 0 : said.error().code;
  }

  // The bound makes the cut atomic, because filesystems commit the parts one after the other. It
  // must be durable first, or a power failure could keep the old bound and some cut parts.
  int shrink(uint64_t size) {
    if (const int error = mark_range(file_, {}); error != 0) return error;
    if (const int error = say(size, true); error != 0) return error;
    if (const int error = cut_sums(file_, size); error != 0) return error;
    if (const int error = lower_promises(parts_of(file_), size, /*durably=*/false); error != 0) {
      return error;
    }
    size_ = size;
    return set_part_sizes(size);
  }

 private:
  bool is_open() const { return layout_.state == FileState::kOpen; }

  // Cuts what a power failure has left behind the file's end, unless another process has done so.
  void cut_unwritten() {
    const OpenSize open = look_at_open(layout_, parts_of(file_));
    if (is_open() && open.is_cut) {
      error_ = cut_sums(file_, open.bytes);
      if (error_ == 0) error_ = set_part_sizes(open.bytes);
      if (error_ != 0) return;
      promise_closed(parts_of(file_), open.bytes);
    }
    file_.stub.bytes_max.store(kNoBound, std::memory_order_relaxed);
    if (is_open()) size_ = std::min(layout_.logical_size, size_of_parts(file_));
  }

  // Makes the stub say `open`, the first time durably. Otherwise a power failure could keep the new
  // parts with a stub that says `closed`.
  int say(uint64_t bound, bool durably = false) {
    if (!is_open()) durably = true;
    if (!is_open() || layout_.logical_size != bound) {
      layout_.state = FileState::kOpen;
      layout_.logical_size = bound;
      if (Result<void> said = write_stub(file_.stub.fd, layout_); !said) return said.error().code;
    }
    return !durably || ::syscall(SYS_fdatasync, file_.stub.fd) == 0 ? 0 : errno;
  }

  // Repairs uneven parts of a dead writer. A cut must be durable before its bound is lifted, or a
  // power failure could bring some parts back in their old length.
  int even_out() {
    const bool has_bound = is_open() && layout_.logical_size != kNoBound;
    int error = has_bound ? cut_sums(file_, size_) : 0;
    if (error == 0) error = set_part_sizes(size_);
    if (error == 0 && has_bound) error = sync_sums(file_);
    // Lowers earlier promises, because they must not count against the new content.
    if (error == 0 && !is_open()) {
      error = promise_all_of_closed(parts_of(file_), size_);
    } else if (error == 0 && has_bound) {
      error = lower_promises(parts_of(file_), size_, /*durably=*/true);
    }
    for (uint32_t d = 0; error == 0 && has_bound && d < file_.parts->count(); ++d) {
      if (::syscall(SYS_fsync, file_.parts->buffered(d)) != 0) error = errno;
    }
    return error;
  }

  int set_part_sizes(uint64_t size) {
    for (uint32_t d = 0; d < file_.parts->count(); ++d) {
      const auto wanted = static_cast<off_t>(file_.map.part_size(d, size));
      struct stat st;
      const int part = file_.parts->buffered(d);
      if (sys::fstat(part, &st) == 0 && st.st_size == wanted) continue;
      if (::syscall(SYS_ftruncate, part, wanted) != 0) return errno;
    }
    return 0;
  }

  const OpenFile& file_;
  const Fd lock_;
  int error_ = 0;
  Layout layout_;
  uint64_t size_ = 0;
};

// The first sync of a new file: its parts and their records, then the stub, which records it. After
// it a power failure leaves no empty file. 0 or an errno.
int sync_new(const OpenFile& file, const BlockedSignals& signals) {
  Layout layout;
  const auto verdict = read_stub(file.stub.fd, kStubSize, &layout);
  if (!verdict || *verdict != StubVerdict::kStub || !layout.is_new) return 0;
  for (uint32_t d = 0; d < file.parts->count(); ++d) {
    if (::syscall(SYS_fsync, file.parts->buffered(d)) != 0) return errno;
  }
  SizeChange change(file, &signals);
  return change.error() != 0 ? change.error() : change.say_synced();
}

// The largest offset is the kernel's.
bool too_large(uint64_t end) { return end > static_cast<uint64_t>(INT64_MAX); }

// Writes from front to back, piece after piece. Bytes or -errno.
ssize_t write_pieces(const OpenFileRef& file, const Memory& memory, size_t wanted, uint64_t offset,
                     bool extends) {
  if (const int error = mark_range(*file, {.offset = offset, .length_bytes = wanted}); error != 0) {
    return -error;
  }
  size_t total = 0;
  for (int i = 0; total < wanted; ++i) {
    const size_t length = std::min(memory.iov[i].iov_len, wanted - total);
    if (length == 0) continue;
    const void* const piece = memory.iov[i].iov_base;
    if (!extends && overwrite_striped(file, offset + total, piece, length) == 0) {
      total += length;
      continue;
    }
    const ssize_t n = write_in_order(file, offset + total, piece, length);
    if (n < 0 && total == 0) return n;
    total += n < 0 ? 0 : static_cast<size_t>(n);
    if (n < static_cast<ssize_t>(length)) break;
  }
  return static_cast<ssize_t>(total);
}

ssize_t write_extending(const OpenFileRef& file, const Memory& memory, size_t wanted, bool append,
                        uint64_t* offset, const BlockedSignals& signals) {
  SizeChange change(*file, &signals);
  if (change.error() != 0) return -change.error();
  if (append) *offset = change.size();
  if (too_large(*offset + wanted)) return -EFBIG;
  int error = 0;
  if (*offset > change.size()) {
    error = change.grow(*offset);
  } else if (*offset + wanted > change.size()) {
    error = change.allow_growth();
  }
  return error != 0 ? -error : write_pieces(file, memory, wanted, *offset, true);
}

// Records the synced size. Skips it while another process changes the size, because that one
// records its own.
void note_synced(const OpenFile& file, uint64_t size) {
  const SizeChange now(file, nullptr);
  if (now.error() == 0 && now.says_open()) {
    promise_synced(parts_of(file), std::min(size, now.size()));
  }
}

}  // namespace

void note_closed(const OpenFile& file) {
  if (!file.stub.grown.exchange(false, std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  const SizeChange now(file, nullptr);
  if (now.error() == 0 && now.says_open()) promise_closed(parts_of(file), now.size());
  errno = saved_errno;
}

ssize_t write_striped(const OpenFileRef& file, const Memory& memory, bool append,
                      uint64_t* offset) {
  const Quietly quietly;
  const size_t wanted = wanted_bytes(memory);
  if (wanted == 0) return 0;
  tell_of_change(*file);
  const bool within = !append && *offset + wanted <= file.size();
  const ssize_t written =
      within ? write_pieces(file, memory, wanted, *offset, false)
             : write_extending(file, memory, wanted, append, offset, quietly.signals);
  if (written <= 0) return written;
  note_written(*file);
  if (!within) file->stub.grown.store(true, std::memory_order_relaxed);
  file->file_counters->count_write(static_cast<uint64_t>(written));
  return written;
}

int resize_striped(const OpenFileRef& file, uint64_t size_bytes) {
  const Quietly quietly;
  if (too_large(size_bytes)) return EFBIG;
  tell_of_change(*file);
  SizeChange change(*file, &quietly.signals);
  if (change.error() != 0) return change.error();
  int error = 0;
  if (size_bytes < change.size()) error = change.shrink(size_bytes);
  if (size_bytes > change.size()) error = change.grow(size_bytes);
  file->stub.grown.store(true, std::memory_order_relaxed);
  if (error == 0) note_written(*file);
  return error;
}

int allocate_striped(const OpenFileRef& file, int mode, ByteRange range) {
  constexpr int kPossible = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  const Quietly quietly;
  if ((mode & ~kPossible) != 0) return EOPNOTSUPP;
  if (too_large(range.end())) return EFBIG;
  tell_of_change(*file);
  SizeChange change(*file, &quietly.signals);
  if (change.error() != 0) return change.error();
  if (const int error = mark_range(*file, range); error != 0) return error;
  if ((mode & FALLOC_FL_PUNCH_HOLE) == 0) {
    if (const int error = note_allocated(parts_of(*file)); error != 0) return error;
  }
  for (uint32_t d = 0; d < file->parts->count(); ++d) {
    const ByteRange run = file->map.run(d, range);
    // Each part keeps its size: an error on a later device leaves only blocks behind the end.
    if (run.length_bytes > 0 &&
        ::syscall(SYS_fallocate, file->parts->buffered(d), mode | FALLOC_FL_KEEP_SIZE, run.offset,
                  run.length_bytes) != 0) {
      return errno;
    }
  }
  const bool extends = (mode & FALLOC_FL_KEEP_SIZE) == 0 && range.end() > change.size();
  const int error = extends ? change.grow(range.end()) : 0;
  if (extends) file->stub.grown.store(true, std::memory_order_relaxed);
  if (error == 0) note_written(*file);
  return error;
}

int sync_striped(const OpenFileRef& file, int fd, bool data_only) {
  const Quietly quietly;
  if (file->stub.is_written) {
    if (const int error = sync_new(*file, quietly.signals); error != 0) return error;
  }
  const uint32_t count = file->parts->count();
  const uint64_t synced =
      file->stub.grown.load(std::memory_order_relaxed) ? size_of_parts(*file) : 0;
  // Starts the writes on all devices before it waits for one; only a hint.
  for (uint32_t d = 0; d < count; ++d) {
    (void)::syscall(SYS_sync_file_range, file->parts->buffered(d), 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  for (uint32_t d = 0; d < count; ++d) {
    // fsync(2) includes owner and mode, which any process may have changed.
    const long call = data_only ? SYS_fdatasync : SYS_fsync;
    if (::syscall(call, file->parts->buffered(d)) != 0) return errno;
    if (data_only || !file->parts->sums().has_blocks(d)) continue;
    if (::syscall(SYS_fsync, file->parts->sums().fd(d)) != 0) return errno;
  }
  if (synced > 0) note_synced(*file, synced);
  // Also for readers: a former writer may have lifted a bound in memory only.
  if (file->stub.is_written) show_written(*file);
  return ::syscall(data_only ? SYS_fdatasync : SYS_fsync, fd) == 0 ? 0 : errno;
}

int sync_filesystems(const OpenFileRef& file) {
  const Quietly quietly;
  for (uint32_t d = 0; d < file->parts->count(); ++d) {
    if (::syscall(SYS_syncfs, file->parts->buffered(d)) != 0) return errno;
  }
  return 0;
}

}  // namespace graphlane::shim
