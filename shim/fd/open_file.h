// OpenFile: a striped file that this process has open, one per inode, with its parts. Descriptors
// in the FdTable and reads in flight hold references; the last one closes the parts.
//
// Threads, signal handlers: acquire() of a known descriptor takes no lock. Identifying an unknown
// one takes the SlowLock.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "iomgr/base/fd.h"
#include "iomgr/base/sys.h"
#include "iomgr/io/device_gate.h"
#include "iomgr/read/plan.h"
#include "iomgr/read/small_reads.h"
#include "iomgr/volume/parts/append_progress.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/parts/promises.h"
#include "shim/fd/fd_table.h"
#include "shim/fd/internal_fd.h"
#include "shim/hooks/groups.h"
#include "shim/locate/locate.h"
#include "shim/locate/stub_watch.h"
#include "shim/share/shared_reader.h"

namespace graphlane::shim {

struct DeviceCounters;
struct FileCounters;

// Without a mount: the file's stub, which this process holds.
struct HeldStub {
  // The size in it, while it is unchanged.
  StubWatch watch;
  // With the lock of a process that has the parts open. For a written file it is open for writing,
  // with a writer's lock. -1: none.
  int fd = -1;
  bool is_written = false;
  // Written since the stub's mtime was last set.
  mutable std::atomic<bool> has_writes{false};
  // The mtime that this process set last.
  mutable std::atomic<int64_t> mtime_set_ns{0};
  // The process that closes it later knows of it (write/told_changes.h).
  mutable std::atomic<bool> told{false};
  // Its size was changed by this process, and note_closed() (writer.h) was not called since.
  mutable std::atomic<bool> grown{false};
  // The end of the file within its parts, until a writer of this boot cuts them.
  mutable std::atomic<uint64_t> bytes_max{kNoBound};
};

// Over a mount, for a file that this process writes: the connection to its server, and the process
// that opened it.
struct WriteLink {
  int fd = -1;
  uint32_t epoch = 0;
  mutable std::atomic<bool> busy{false};
  AppendProgress* progress = nullptr;           // as long as fd
  const std::atomic<uint32_t>* life = nullptr;  // of the server (server_protocol.h)
  // An append past the kernel (link_writer.h): a descriptor that may append without a look at it;
  // -1: no append. The rest belongs to the holder of `busy`.
  mutable std::atomic<int> append_fd{-1};
  mutable uint64_t append_limit = 0;  // offset
  mutable uint32_t append_count = 0;  // writes of it
  mutable uint32_t append_pause = 0;  // how many writes go through the kernel once it has ended
  mutable uint32_t append_skips = 0;  // … and still have to

  void unmap() {
    if (progress != nullptr) sys::munmap(std::exchange(progress, nullptr), kAppendPageBytes);
  }
};

// Over a mount: the generation in which the file was identified.
struct ServedGeneration {
  const Generation* counter = nullptr;  // null: without a mount
  uint64_t generation = 0;

  // Whether no writer has begun or ended since.
  bool still_holds() const {
    // Acquire: a thread that sees the old value may use what was read before.
    return counter == nullptr || counter->load(std::memory_order_acquire) == generation;
  }
};

struct OpenFile {
  // 0: not in use, or being closed. Only the SlowLock's holder raises it from 0.
  std::atomic<uint32_t> references{0};
  std::atomic<bool> in_use{false};
  // The program closed the parts without the library's knowledge: the next user opens them again.
  mutable std::atomic<bool> lost{false};

  // Constant while references > 0.
  uint32_t slot = 0;
  dev_t device_number = 0;
  ino_t inode = 0;
  Origin origin = Origin::kForeign;
  int error = 0;  // kDamaged: the errno of reads
  Uuid volume;
  Uuid file_id;
  StubSize said;    // the stub's when it was identified; over a mount the size
  ReadState state;  // but for what a descriptor adds: OpenFileRef::state()
  StripeMap map;
  PartFiles* parts = nullptr;  // in the slot's storage
  DeviceCounters* counters[kDeviceCountMax] = {};
  DeviceGate* gates[kDeviceCountMax] = {};
  FileCounters* file_counters = nullptr;

  HeldStub stub;            // without a mount
  ServedGeneration served;  // over a mount
  WriteLink link;
  SmallReads small_reads;
  mutable SharedReader sharing;

  // As a descriptor reads it that was opened with O_DIRECT, or without.
  ReadState state_of(bool o_direct) const {
    ReadState read = state;
    read.o_direct = o_direct;
    return read;
  }
};

// The state of small reads of the file in the table; null: none.
SmallReads* small_reads_of(int fd);

// A reference to the OpenFile of a descriptor; empty for a foreign one.
class OpenFileRef {
 public:
  OpenFileRef() = default;
  OpenFileRef(OpenFile* file, FdEntry entry, const StubSize& said)
      : file_(file), entry_(entry), said_(said) {}
  OpenFileRef(OpenFileRef&& other) noexcept
      : file_(other.file_), entry_(other.entry_), said_(other.said_) {
    other.file_ = nullptr;
  }
  OpenFileRef& operator=(OpenFileRef&&) = delete;
  ~OpenFileRef();

  explicit operator bool() const { return file_ != nullptr; }
  const OpenFile* operator->() const { return file_; }
  const OpenFile& operator*() const { return *file_; }
  ReadState state() const { return file_->state_of(entry_.o_direct()); }
  // Whether reads of this descriptor, and aligned writes, bypass the parts' page cache.
  bool bypasses_page_cache() const { return graphlane::bypasses_page_cache(state()); }
  Access access() const { return entry_.access(); }
  // The file's size now, in bytes.
  uint64_t size() const;
  // While this is the same, so are the file's bytes; 0: unknown, or a process is changing the file.
  uint64_t content_generation() const;
  int64_t ctime_ns() const { return said_.ctime_ns; }  // 0: not known
  // Whether the descriptor is the stub's: its size, content and offset end are not the file's.
  bool on_stub() const { return file_->origin != Origin::kMount; }

 private:
  OpenFile* file_ = nullptr;
  FdEntry entry_;
  StubSize said_;
};

// The file was written to. note_written() sets its mtime for the first time. show_written() sets it
// when a process may look at it, or when the file is closed: to the time of the last write, unless the
// mtime was changed otherwise after that (utimensat(2)).
void note_written(const OpenFile& file);
void show_written(const OpenFile& file);

// The size of a file by its parts, in bytes.
uint64_t size_of_parts(const OpenFile& file);

// Its parts, for access to their records; records in a `.sum` are skipped.
OpenPartsOf parts_of(const OpenFile& file);

// Whether the table knows that the descriptor is no striped file's: one load.
inline bool is_known_foreign(int fd) {
  if (!FdTable::covers(fd)) return fd < 0;
  const FdEntry entry = fd_table.load(fd);
  return entry == FdEntry::foreign() || entry == FdEntry::internal() || entry == FdEntry::mounted();
}

// Whether it may be open for writing on a mount; also one load.
inline bool may_be_linked(int fd) {
  if (!FdTable::covers(fd)) return false;
  const FdEntry entry = fd_table.load(fd);
  return entry == FdEntry::mounted() || entry.is_ours();
}

// Identifies the descriptor if needed. Keeps errno.
OpenFileRef acquire(int fd);

// As acquire(), for files without a mount. With a group: over a mount the call is left to FUSE, and
// counted as such.
OpenFileRef acquire_stub(int fd);
OpenFileRef acquire_stub(int fd, Group group);

// As acquire_stub(), for a descriptor that the table knows; identifies nothing.
OpenFileRef acquire_known_stub(int fd);

// The file of a descriptor that writes over a mount, if its server lets this process write the
// parts (link_fd). Keeps errno.
OpenFileRef acquire_link(int fd);

// The file of a descriptor by which the server lets this process append now (AppendProgress). It is
// open then, because a close ends the append. Else empty.
OpenFileRef acquire_append(int fd);

// Adds a new descriptor of a stub; `stub` is open for writing on it. 0 or an errno.
int adopt(int fd, Fd stub);

// Identifies descriptors of that inode again at their next use: it is another kind of file now.
void identify_anew(const struct stat& st);

// Whether this process has that stub's file open; sets its size, in bytes.
bool size_if_open(const struct stat& st, uint64_t* size_bytes);

// The open file with that inode, or empty. A look at a stub by this keeps the process's record
// locks on it, which end when any of its descriptors is closed.
OpenFileRef acquire_open(const struct stat& st);

// The size of a stub's file, in bytes; `fd` is the stub's.
uint64_t current_size(int fd, const Layout& layout);

// The descriptor was opened, closed or replaced: it becomes unknown.
void forget(int fd);

}  // namespace graphlane::shim
