#include "shim/open_file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <new>

#include "iomgr/base/sys.h"
#include "iomgr/memory_limit.h"
#include "shim/process.h"
#include "shim/report.h"
#include "shim/settings.h"
#include "shim/slow_lock.h"

namespace graphlane {

constinit FdTable fd_table;

namespace {

// Files open at once; more are served by FUSE, or fail without a mount.
constexpr uint32_t kOpenFileMax = 4096;

OpenFile open_files[kOpenFileMax];
struct alignas(PartFiles) PartStorage {
  unsigned char bytes[sizeof(PartFiles)];
} part_storage[kOpenFileMax];
std::atomic<uint32_t> slots_used{0};  // slots that were ever taken
SlowLock slow_lock;

void unreference(OpenFile* file) {
  // Release and acquire: the last one sees everything that the others did.
  if (file->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (uint32_t d = 0; d < file->parts->count(); ++d) {
    for (const int fd : {file->parts->buffered(d), file->parts->direct_if_open(d)}) {
      if (FdTable::covers(fd)) fd_table.exchange(fd, FdEntry::unknown());
    }
  }
  file->parts->~PartFiles();
  file->in_use.store(false, std::memory_order_release);
}

// Adds a reference unless the file is going away.
bool reference(OpenFile* file) {
  uint32_t count = file->references.load(std::memory_order_relaxed);
  while (count > 0) {
    if (file->references.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

// Whether nobody has begun or ceased to write the file since it was identified.
bool still_holds(const OpenFile& file) {
  // Acquire: who sees the old value may read what was there then.
  return file.counter == nullptr ||
         file.counter->load(std::memory_order_acquire) == file.generation;
}

// A file that is open already, with a reference more. Under the lock.
OpenFile* find_open(const struct stat& st) {
  const uint32_t used = slots_used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    OpenFile& file = open_files[i];
    if (!file.in_use.load(std::memory_order_acquire) || !reference(&file)) continue;
    const bool same = file.device_number == st.st_dev && file.inode == st.st_ino;
    if (same && !file.lost.load(std::memory_order_relaxed) && still_holds(file)) return &file;
    unreference(&file);
  }
  return nullptr;
}

// A free slot; null: all are taken. Under the lock.
OpenFile* take_slot() {
  const uint32_t used = slots_used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    if (!open_files[i].in_use.load(std::memory_order_acquire)) return &open_files[i];
  }
  if (used == kOpenFileMax) return nullptr;
  slots_used.store(used + 1, std::memory_order_relaxed);
  open_files[used].slot = used;
  return &open_files[used];
}

// The program can neither close the parts nor take their numbers for its own.
void protect(const PartFiles& parts, bool direct) {
  for (uint32_t d = 0; d < parts.count(); ++d) {
    const int fds[] = {parts.buffered(d), direct ? parts.direct(d) : -1};
    for (const int fd : fds) {
      if (FdTable::covers(fd)) fd_table.exchange(fd, FdEntry::internal());
    }
  }
}

// Fills a slot, with one reference. Null: the file is foreign. Under the lock.
OpenFile* open_slot(int fd, const struct stat& st, bool direct) {
  OpenFile* file = take_slot();
  if (file == nullptr) return nullptr;
  auto* parts = new (part_storage[file->slot].bytes) PartFiles(internal_fd_floor());
  const Located located = locate(fd, st, parts);
  if (located.origin == Origin::kForeign) {
    parts->~PartFiles();
    return nullptr;
  }
  file->device_number = st.st_dev;
  file->inode = st.st_ino;
  // What is short now (descriptors, memory) is tried again at the next read.
  // Relaxed: references publishes it.
  file->lost.store(located.error == EMFILE || located.error == ENFILE || located.error == ENOMEM,
                   std::memory_order_relaxed);
  file->origin = located.origin;
  file->counter = located.counter;
  file->generation = located.generation;
  file->error = located.error;
  file->size_bytes = located.layout.logical_size;
  file->parts = parts;
  file->file_counters = counters_of_file(fd, located.origin);
  if (located.origin == Origin::kMount || located.origin == Origin::kStub) {
    file->map = located.layout.map();
    file->too_large_for_memory = wants_direct(settings().io_mode, file->size_bytes, false);
    protect(*parts, direct || file->too_large_for_memory);
    for (uint32_t d = 0; d < parts->count(); ++d) {
      file->counters[d] = counters_of_device(located_device(d));
    }
  }
  file->references.store(1, std::memory_order_relaxed);
  file->in_use.store(true, std::memory_order_release);
  return file;
}

// What the caller gets of a file that he holds a reference of: one that somebody
// writes is the filesystem's.
OpenFileRef hand_out(OpenFile* file, bool direct) {
  if (file->origin != Origin::kWritten) return {file, direct};
  file->file_counters->written_count.fetch_add(1, std::memory_order_relaxed);
  unreference(file);
  return {};
}

// A reference for the table and one for the caller. Null: foreign.
OpenFileRef identify(int fd) {
  process_epoch();  // so that in_vfork_child() can tell
  if (in_vfork_child()) return {};  // the parts would be open there, and not here
  const SlowLockGuard lock(slow_lock);
  if (!lock) return {};
  const int flags = sys::fcntl(fd, F_GETFL);
  struct stat st;
  if (flags < 0 || sys::fstat(fd, &st) != 0) return {};
  const bool readable = (flags & O_ACCMODE) != O_WRONLY && (flags & O_PATH) == 0;
  const bool direct = (flags & O_DIRECT) != 0 && settings().io_mode != IoMode::kBuffered;
  OpenFile* file = nullptr;
  if (readable && S_ISREG(st.st_mode)) {
    file = find_open(st);
    if (file == nullptr) file = open_slot(fd, st, direct);
    else if (direct) protect(*file->parts, true);
  }
  if (file == nullptr) {
    if (FdTable::covers(fd)) fd_table.replace(fd, FdEntry::unknown(), FdEntry::foreign());
    return {};
  }
  if (FdTable::covers(fd)) {
    reference(file);  // cannot fail: we hold one
    if (!fd_table.replace(fd, FdEntry::unknown(), FdEntry::ours(file->slot, direct))) {
      unreference(file);  // another thread closed or identified it meanwhile
    }
  }
  return hand_out(file, direct);
}

// Whether the number still means the file that the table says. The filesystem is
// not asked: that would cost a message now and then, and fail when it has died.
bool still_open(const OpenFile& file, int fd) {
  struct statx st;
  return !file.lost.load(std::memory_order_relaxed) &&
         ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) == 0 &&
         makedev(st.stx_dev_major, st.stx_dev_minor) == file.device_number &&
         st.stx_ino == file.inode;
}

OpenFileRef acquire_slow(int fd) {
  const int saved_errno = errno;
  while (true) {
    const FdEntry entry = FdTable::covers(fd) ? fd_table.load(fd) : FdEntry::unknown();
    if (entry == FdEntry::unknown()) {
      OpenFileRef file = identify(fd);
      errno = saved_errno;
      return file;
    }
    if (!entry.is_ours()) return {};
    OpenFile* file = &open_files[entry.slot()];
    if (!reference(file)) continue;  // closed by another thread just now
    if (fd_table.load(fd) == entry && still_open(*file, fd) && still_holds(*file)) {
      errno = saved_errno;
      return hand_out(file, entry.direct());
    }
    unreference(file);
    if (in_vfork_child()) return {};  // the number is still the file's where we belong
    // Closed in a way that we did not see, and the number is another file's now;
    // or a writer has come or gone.
    if (fd_table.replace(fd, entry, FdEntry::unknown())) unreference(file);
  }
}

}  // namespace

int internal_fd_floor() {
  static std::atomic<int> floor{0};
  int known = floor.load(std::memory_order_relaxed);
  if (known > 0) return known;
  rlimit limit{};
  ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  // The upper quarter; with a high limit no higher than 3/4 of 65536, because
  // the kernel's table of descriptors grows to the highest number.
  known = static_cast<int>(std::clamp<rlim_t>(limit.rlim_cur, 4, 65536) / 4 * 3);
  floor.store(known, std::memory_order_relaxed);
  return known;
}

OpenFileRef::~OpenFileRef() {
  if (file_ != nullptr) unreference(file_);
}

OpenFileRef acquire(int fd) { return is_known_foreign(fd) ? OpenFileRef() : acquire_slow(fd); }

OpenFileRef acquire_stub(int fd) {
  OpenFileRef file = acquire(fd);
  if (file && !file.on_stub()) return {};
  return file;
}

OpenFileRef acquire_stub(int fd, Group group) {
  OpenFileRef file = acquire(fd);
  if (!file || file.on_stub()) return file;
  file->file_counters->count_left(group);
  return {};
}

void forget(int fd) {
  if (!FdTable::covers(fd)) return;
  FdEntry entry = fd_table.load(fd);
  if (entry == FdEntry::unknown()) return;
  // A child by vfork closes a descriptor of its own, not ours.
  if (entry.is_ours() && in_vfork_child()) return;
  entry = fd_table.exchange(fd, FdEntry::unknown());
  if (entry.is_ours()) unreference(&open_files[entry.slot()]);
}

}  // namespace graphlane
