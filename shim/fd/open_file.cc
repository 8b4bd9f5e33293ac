#include "shim/fd/open_file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <new>
#include <utility>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "shim/base/process.h"
#include "shim/base/report.h"
#include "shim/base/settings.h"
#include "shim/base/slow_lock.h"
#include "shim/base/sum_failures.h"
#include "shim/locate/foresight.h"
#include "shim/locate/stub_path.h"
#include "shim/read/queues.h"
#include "shim/share/mapped_pages.h"
#include "shim/write/writer.h"

namespace graphlane::shim {

constinit FdTable fd_table;
constinit SlowLock slow_lock;

namespace {

// Files open at once; more are served by FUSE, or fail without a mount.
constexpr uint32_t kOpenFileMax = 4096;
// A reader of a file larger than this share of the free memory prepares to share it.
constexpr uint64_t kRoomFactor = 4;

// Zero pages; a slot touches its page only once it is used, so that small programs touch few.
struct alignas(OpenFile) FileStorage {
  unsigned char bytes[sizeof(OpenFile)];
} file_storage[kOpenFileMax];
struct alignas(PartFiles) PartStorage {
  unsigned char bytes[sizeof(PartFiles)];
} part_storage[kOpenFileMax];
std::atomic<uint32_t> slots_used{0};  // slots that were ever taken

OpenFile& open_file(uint32_t slot) {
  return *std::launder(reinterpret_cast<OpenFile*>(file_storage[slot].bytes));
}

void set_mtime(const OpenFile& file) {
  const int saved_errno = errno;
  const timespec now[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                           {.tv_sec = 0, .tv_nsec = UTIME_NOW}};
  // Only the owner may set one time alone; any writer may set both to now.
  if (::futimens(file.stub_fd, now) != 0) (void)::futimens(file.stub_fd, nullptr);
  errno = saved_errno;
}

void unreference(OpenFile* file) {
  // Release and acquire: the last reference sees the effects of all others.
  if (file->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (file->origin == Origin::kStub && file->written_here) note_closed(*file);
  for (uint32_t d = 0; d < file->parts->count(); ++d) {
    set_entry(file->parts->buffered(d), FdEntry::unknown());
    set_entry(file->parts->direct_if_open(d), FdEntry::unknown());
    if (file->parts->sums().fd(d) >= 0) set_entry(file->parts->sums().fd(d), FdEntry::unknown());
  }
  file->parts->~PartFiles();
  file->sharing.end();
  file->small_reads.end();
  if (file->stub_fd >= 0) {
    show_written(*file);
    drop_internal(file->stub_fd);
  }
  if (file->progress != nullptr)
    sys::munmap(std::exchange(file->progress, nullptr), kAppendPageBytes);
  if (file->link_fd >= 0) drop_internal(file->link_fd);
  file->in_use.store(false, std::memory_order_release);
}

// Adds a reference unless the file is being closed.
bool reference(OpenFile* file) {
  uint32_t count = file->references.load(std::memory_order_relaxed);
  while (count > 0) {
    if (file->references.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

// Whether no writer has begun or ended since the file was identified.
bool still_holds(const OpenFile& file) {
  // Acquire: a thread that sees the old value may use what was read before.
  return file.counter == nullptr ||
         file.counter->load(std::memory_order_acquire) == file.generation;
}

// For programs that end without close(2): promises the present size of their files until the
// machine stops. Frees nothing, because other threads may still read and write.
__attribute__((destructor)) void note_what_is_open() {
  const uint32_t used = slots_used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    OpenFile& file = open_file(i);
    if (!file.in_use.load(std::memory_order_acquire) || !reference(&file)) continue;
    if (file.origin == Origin::kStub && file.written_here) {
      note_closed(file);
      show_written(file);
    }
    unreference(&file);
  }
}

// An open file with that inode, with a reference added; a written one is preferred. A read-only one
// is no use to a writer, and stays with its readers. Under the lock.
OpenFile* find_open(const struct stat& st, Access access, bool linked = false) {
  const uint32_t used = slots_used.load(std::memory_order_relaxed);
  OpenFile* read_only = nullptr;
  for (uint32_t i = 0; i < used; ++i) {
    OpenFile& file = open_file(i);
    if (!file.in_use.load(std::memory_order_acquire) || !reference(&file)) continue;
    const bool same = file.device_number == st.st_dev && file.inode == st.st_ino &&
                      (file.origin == Origin::kLinked) == linked;
    // A failure to write does not concern a reader.
    const bool is_of_use =
        file.origin != Origin::kDamaged || !file.written_here || may_write(access);
    const bool is_good =
        same && is_of_use && !file.lost.load(std::memory_order_relaxed) && still_holds(file);
    const bool is_read_only = file.origin == Origin::kStub && !file.written_here;
    if (is_good && !is_read_only) {
      if (read_only != nullptr) unreference(read_only);
      return &file;
    }
    if (is_good && read_only == nullptr && !may_write(access)) {
      read_only = &file;
    } else {
      unreference(&file);
    }
  }
  return read_only;
}

// A free slot; null: all are taken. Under the lock.
OpenFile* take_slot() {
  const uint32_t used = slots_used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    if (!open_file(i).in_use.load(std::memory_order_acquire)) return &open_file(i);
  }
  if (used == kOpenFileMax) return nullptr;
  slots_used.store(used + 1, std::memory_order_relaxed);
  OpenFile* const file = new (file_storage[used].bytes) OpenFile();
  file->slot = used;
  return file;
}

// Keeps the program from closing the parts, and from taking their numbers.
void protect(int fd) { set_entry(fd, FdEntry::internal()); }

void protect(const PartFiles& parts, bool direct) {
  for (uint32_t d = 0; d < parts.count(); ++d) {
    protect(parts.buffered(d));
    if (parts.sums().fd(d) >= 0) protect(parts.sums().fd(d));
    if (direct) parts.direct(d);
  }
}

uint64_t size_now(const OpenFile& file, const StubSize& said) {
  if (said.state == FileState::kClosed) return said.bytes;
  return std::min(said.bytes, size_of_parts(file));
}

// The stub's descriptor that holds the file, opened before the stub is read. Empty: not a stub, or
// it may not be opened (errno). A file that is no stub is not opened at all: its close would end
// the program's record locks, and a process that waits for such a lock would block here.
Fd hold_stub(int fd, const struct stat& st, Access access, Fd stub) {
  Layout layout;
  if (st.st_size != kStubSize || lies_on_fuse(fd) ||
      read_stub(fd, kStubSize, &layout).value_or(StubVerdict::kNotAStub) ==
          StubVerdict::kNotAStub) {
    return {};
  }
  if (!stub || !may_write(access)) {
    stub = lifted(reopen(fd, may_write(access) ? O_RDWR : O_RDONLY));
  }
  if (stub) hold_parts(stub.get());
  return stub;
}

// Whether the shortage is transient (descriptors, memory, another writer): then the next call tries
// again.
bool is_passing(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EBUSY;
}

// Fills a slot with the located file, with one reference.
void fill_slot(OpenFile* file, int fd, const struct stat& st, const Located& located,
               PartFiles* parts, bool direct) {
  file->device_number = st.st_dev;
  file->inode = st.st_ino;
  // Relaxed: references publishes both.
  file->lost.store(is_passing(located.error), std::memory_order_relaxed);
  file->written.store(false, std::memory_order_relaxed);
  file->grown.store(false, std::memory_order_relaxed);
  file->told.store(false, std::memory_order_relaxed);
  file->bytes_max.store(located.bytes_max, std::memory_order_relaxed);
  file->origin = located.origin;
  file->counter = located.counter;
  file->generation = located.generation;
  file->error = located.error;
  file->volume = located.layout.volume;
  file->file_id = located.layout.file_id;
  file->said = {.bytes = located.layout.logical_size, .state = located.layout.state};
  file->stub.remember(located.stub_ctime, file->said);
  file->state = {.mode = settings().io_mode, .maps = settings().maps};
  file->parts = parts;
  file->file_counters = counters_of_file(fd, located.origin);
  file->sharing.fits.store(true, std::memory_order_relaxed);
  file->sharing.looked_ms.store(0, std::memory_order_relaxed);
  if (parts->count() > 0) {
    file->map = located.layout.map();
    const bool only_read = !file->written_here && file->link_fd < 0;
    const IoMode mode = settings().io_mode;
    const uint64_t size = size_now(*file, file->said);
    const uint64_t available = only_read && mode == IoMode::kAuto ? memory_available_bytes() : 0;
    if (only_read) file->state.fit = fit_in_memory(mode, size, available);
    protect(*parts, direct || file->state.fit == MemoryFit::kNot);
    for (uint32_t d = 0; d < parts->count(); ++d) {
      file->counters[d] = counters_of_device(located_device(d));
      if (located.counts != nullptr) file->counters[d]->mirror_to(&located.counts[d]);
      file->gates[d] = gate_of(parts->buffered(d), located_device(d));
      if (file->gates[d] != nullptr) file->counters[d]->depth = file->gates[d]->width();
    }
    file->state.on_disks = file->gates[0] != nullptr && file->gates[0]->seeks();
    const bool may_become_too_large =
        only_read && fit_in_memory(mode, kRoomFactor * size, available) == MemoryFit::kNot;
    const bool may_share = direct || may_become_too_large || settings().maps;
    if (file->origin == Origin::kMount && settings().shares && may_share) {
      file->sharing.begin(ask_mount_to_share, fd, file->generation, file->said.bytes);
      if (wants_permit(*file)) permit_mapping(*file, ask_mount_to_map(fd));
    }
    if (file->origin == Origin::kMount && file->state.fit != MemoryFit::kNot) {
      file->small_reads.begin(served_counter(file->counter), &file->file_counters->small_count);
    }
  }
  file->references.store(1, std::memory_order_relaxed);
  file->in_use.store(true, std::memory_order_release);
}

PartFiles* make_parts(OpenFile* file) {
  file->stub_fd = file->link_fd = -1;
  file->written_here = false;
  file->progress = nullptr;
  return new (part_storage[file->slot].bytes) PartFiles(internal_fd_floor(), protect);
}

// A slot with one reference. Null: the file is foreign. Under the lock.
OpenFile* open_slot(int fd, const struct stat& st, Access access, bool direct, Fd stub) {
  OpenFile* file = take_slot();
  if (file == nullptr) return nullptr;
  PartFiles* parts = make_parts(file);
  errno = 0;
  Fd held = hold_stub(fd, st, access, std::move(stub));
  int error = errno;
  // Before the parts and their records are opened, because a process that closes the file changes
  // which checksums there are.
  if (held && may_write(access)) {
    const Result<void> mine = lock_to_change(held.get(), F_RDLCK);
    error = mine ? 0 : mine.error().code;  // EBUSY: a mount changes the file, or it is mapped
  }
  writes_without_mount.store(true, std::memory_order_relaxed);
  tell_sum_failures();
  Located located = locate(fd, st, access, parts);
  if (located.origin == Origin::kForeign) {
    parts->~PartFiles();
    return nullptr;
  }
  if (located.origin == Origin::kStub) {
    if (const int refused = serve_alone(); refused != 0) {
      explain_once(Refusal::kRing, fd);
      located.origin = Origin::kDamaged;
      located.error = refused;
    }
    if (may_write(access) && error != 0) {
      located.origin = Origin::kDamaged;
      located.error = error;
    }
    file->written_here = may_write(access);
    file->stub_fd = keep_internal(std::move(held));
  }
  fill_slot(file, fd, st, located, parts, direct);
  return file;
}

// As open_slot(), for a file that the mount's server lets this process write.
OpenFile* open_link(int fd, const struct stat& st, bool direct) {
  OpenFile* file = take_slot();
  if (file == nullptr) return nullptr;
  PartFiles* parts = make_parts(file);
  Fd connection;
  const Located located = locate_to_write(fd, parts, &connection, &file->progress);
  if (located.origin != Origin::kLinked) {
    if (file->progress != nullptr)
      sys::munmap(std::exchange(file->progress, nullptr), kAppendPageBytes);
    parts->~PartFiles();
    return nullptr;
  }
  file->life = located.life;
  file->append_fd.store(-1, std::memory_order_relaxed);
  file->append_pause = file->append_count = file->append_skips = 0;
  file->append_limit = 0;
  file->link_fd = keep_internal(std::move(connection));
  file->link_epoch = process_epoch();
  file->link_busy.store(false, std::memory_order_relaxed);  // references publishes it
  fill_slot(file, fd, st, located, parts, direct);
  return file;
}

// Returns a referenced file to the caller. Empty while the file has a writer: then the filesystem
// serves it.
OpenFileRef hand_out(OpenFile* file, FdEntry entry, const StubSize& said) {
  if (file->origin != Origin::kWritten && file->origin != Origin::kLinked) {
    return {file, entry, said};
  }
  file->file_counters->written_count.fetch_add(1, std::memory_order_relaxed);
  unreference(file);
  return {};
}

constexpr unsigned kStatMask = STATX_INO | STATX_CTIME;

// Does not ask the filesystem: that would cost a message now and then, and fail for a dead one.
bool look(int fd, struct statx* st) {
  return ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, kStatMask, st) == 0;
}

// Reads the size from a changed stub. False: it belongs to another file now. Under the lock.
bool read_again(OpenFile& file, int fd, StubSize* said) {
  struct statx st;
  Layout layout;
  const int readable = file.stub_fd >= 0 ? file.stub_fd : fd;
  if (!look(fd, &st) || st.stx_size != kStubSize ||
      read_stub(readable, kStubSize, &layout).value_or(StubVerdict::kNotAStub) !=
          StubVerdict::kStub ||
      layout.file_id != file.file_id) {
    file.lost.store(true, std::memory_order_relaxed);
    return false;
  }
  *said = {
      .bytes = layout.logical_size, .state = layout.state, .ctime_ns = nanoseconds(st.stx_ctime)};
  file.stub.remember(st.stx_ctime, *said);
  if (file.bytes_max.load(std::memory_order_relaxed) != kNoBound && file.parts->count() > 0) {
    const OpenSize open = look_at_open(layout, parts_of(file));
    if (!open.is_cut) file.bytes_max.store(kNoBound, std::memory_order_relaxed);
  }
  return true;
}

// Whether the number still is the file in the table; `said` is what its stub says.
bool still_open(OpenFile& file, int fd, StubSize* said) {
  struct statx st;
  if (file.lost.load(std::memory_order_relaxed) || !look(fd, &st) ||
      makedev(st.stx_dev_major, st.stx_dev_minor) != file.device_number ||
      st.stx_ino != file.inode) {
    return false;
  }
  *said = file.said;
  const bool known = file.origin != Origin::kStub || file.stub.holds(st.stx_ctime, said);
  said->ctime_ns = nanoseconds(st.stx_ctime);
  if (known) return true;
  const SlowLockGuard lock(slow_lock);
  return lock && read_again(file, fd, said);
}

// Returns a reference for the table and one for the caller. Null: foreign. `stub`: the stub, open
// for writing, if the caller has it.
OpenFileRef identify(int fd, Fd stub = {}) {
  process_epoch();                  // needed by in_vfork_child()
  if (in_vfork_child()) return {};  // the parts would be open in the child, but not here
  const SlowLockGuard lock(slow_lock);
  if (!lock) return {};
  const int flags = sys::fcntl(fd, F_GETFL);
  struct stat st;
  if (flags < 0 || sys::fstat(fd, &st) != 0) return {};
  const Access access = access_of(fd, flags);
  const bool direct = (flags & O_DIRECT) != 0 && settings().io_mode != IoMode::kBuffered;
  OpenFile* file = nullptr;
  StubSize said;
  if (access != Access::kNone && S_ISREG(st.st_mode)) {
    file = find_open(st, access);
    const bool is_new = file == nullptr;
    if (is_new) file = open_slot(fd, st, access, direct, std::move(stub));
    if (file != nullptr) {
      said = file->said;
      said.ctime_ns = ctime_ns_of(st);
      if (!is_new && direct) protect(*file->parts, true);
      if (!is_new && file->origin == Origin::kStub) read_again(*file, fd, &said);
    }
  }
  if (file != nullptr && file->origin != Origin::kStub && file->origin != Origin::kDamaged &&
      access != Access::kRead) {
    unreference(file);  // over a mount FUSE serves it
    file = nullptr;
  }
  // fstat() looks at it each time (hooks/stub.cc).
  if (access == Access::kNone && has_stub_size(st)) return {};
  if (file == nullptr) {
    const bool mounted = may_write(access) && S_ISREG(st.st_mode) && lies_on_fuse(fd);
    const FdEntry entry = mounted ? FdEntry::mounted() : FdEntry::foreign();
    if (FdTable::covers(fd)) fd_table.replace(fd, FdEntry::unknown(), entry);
    return {};
  }
  const FdEntry entry = FdEntry::ours(file->slot, direct, access);
  if (FdTable::covers(fd)) {
    reference(file);  // cannot fail: the caller holds a reference
    if (!fd_table.replace(fd, FdEntry::unknown(), entry)) {
      unreference(file);  // another thread closed or identified it meanwhile
    }
  }
  return hand_out(file, entry, said);
}

// Asks the mount's server, once. Returns a reference for the table and one for the caller.
OpenFileRef link(int fd) {
  if (in_vfork_child()) return {};
  const SlowLockGuard lock(slow_lock);
  const int flags = sys::fcntl(fd, F_GETFL);
  struct stat st;
  if (!lock || flags < 0 || sys::fstat(fd, &st) != 0) return {};
  const bool direct = (flags & O_DIRECT) != 0 && settings().io_mode != IoMode::kBuffered;
  OpenFile* file = find_open(st, Access::kWrite, true);
  if (file == nullptr) file = open_link(fd, st, direct);
  const FdEntry entry = file == nullptr ? FdEntry::foreign()
                                        : FdEntry::ours(file->slot, direct, access_of_flags(flags));
  const bool kept = fd_table.replace(fd, FdEntry::mounted(), entry);
  if (file == nullptr) return {};
  if (kept) reference(file);  // cannot fail: the caller holds a reference
  return {file, entry, file->said};
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
    OpenFile* file = &open_file(entry.slot());
    if (!reference(file)) continue;  // closed by another thread just now
    StubSize said;
    if (fd_table.load(fd) == entry && still_open(*file, fd, &said) && still_holds(*file)) {
      errno = saved_errno;
      return hand_out(file, entry, said);
    }
    unreference(file);
    if (in_vfork_child()) return {};  // the number still is the file's in the parent
    // Closed without the library's knowledge, and reused for another file; or a writer has begun or
    // ended.
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
  // The upper quarter, but with a high limit no higher than 3/4 of 65536, because the kernel's
  // table of descriptors grows to the highest number.
  known = static_cast<int>(std::clamp<rlim_t>(limit.rlim_cur, 4, 65536) / 4 * 3);
  floor.store(known, std::memory_order_relaxed);
  return known;
}

SmallReads* small_reads_of(int fd) {
  if (!FdTable::covers(fd)) return nullptr;
  const FdEntry entry = fd_table.load(fd);
  return entry.is_ours() && !entry.direct() ? &open_file(entry.slot()).small_reads : nullptr;
}

OpenFileRef::~OpenFileRef() {
  if (file_ != nullptr) unreference(file_);
}

uint64_t OpenFileRef::size() const { return size_now(*file_, said_); }

// A writer without a mount shows in its lock, and in the stub's ctime when it begins and ends. A
// writer by the mount shows in the counter. A change behind the mount shows in the ctime, once the
// kernel has updated it.
uint64_t OpenFileRef::content_generation() const {
  if (said_.ctime_ns == 0) return 0;
  const auto ctime = static_cast<uint64_t>(said_.ctime_ns);
  if (file_->origin == Origin::kMount) {
    const auto counter = reinterpret_cast<uintptr_t>(file_->counter);  // unique for this server
    return (ctime + counter) * 0x9e3779b97f4a7c15 + file_->generation;
  }
  const bool may_change = file_->origin != Origin::kStub || file_->written_here ||
                          said_.state != FileState::kClosed ||
                          may_change_unseen(file_->stub_fd, said_.ctime_ns);
  return may_change ? 0 : ctime;
}

void note_written(const OpenFile& file) {
  if (!file.written.exchange(true, std::memory_order_relaxed)) set_mtime(file);
}

void show_written(const OpenFile& file) {
  if (file.written.exchange(false, std::memory_order_relaxed)) set_mtime(file);
}

uint64_t size_of_parts(const OpenFile& file) {
  uint64_t sizes[kDeviceCountMax];
  const uint32_t count = file.parts->count();
  for (uint32_t d = 0; d < count; ++d) {
    struct stat st;
    sizes[d] =
        sys::fstat(file.parts->buffered(d), &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
  }
  return std::min(file.map.logical_size({sizes, count}),
                  file.bytes_max.load(std::memory_order_relaxed));
}

OpenPartsOf parts_of(const OpenFile& file) {
  return {.parts = file.parts->all_buffered(),
          .roots = {},
          .volume = file.volume,
          .file_id = file.file_id,
          .geometry = file.map.geometry()};
}

Fd lifted(Fd fd) {
  if (!fd || fd.get() >= internal_fd_floor()) return fd;
  Fd high(sys::fcntl(fd.get(), F_DUPFD_CLOEXEC, internal_fd_floor()));
  return high ? std::move(high) : std::move(fd);
}

int keep_internal(Fd fd) {
  const int kept = lifted(std::move(fd)).release();
  set_entry(kept, FdEntry::internal());
  return kept;
}

void drop_internal(int fd) {
  set_entry(fd, FdEntry::unknown());
  sys::close(fd);
}

int adopt(int fd, Fd stub) {
  forget(fd);
  const OpenFileRef file = identify(fd, std::move(stub));
  if (!file) return EMFILE;
  return file->origin == Origin::kDamaged ? file->error : 0;
}

OpenFileRef acquire(int fd) { return is_known_foreign(fd) ? OpenFileRef() : acquire_slow(fd); }

OpenFileRef acquire_link(int fd) {
  const int saved_errno = errno;
  const FdEntry entry = fd_table.load(fd);
  if (entry == FdEntry::mounted()) {
    OpenFileRef linked = link(fd);
    errno = saved_errno;
    return linked;
  }
  if (!entry.is_ours()) return {};
  OpenFile* file = &open_file(entry.slot());
  if (!reference(file)) return {};
  StubSize said;
  const bool good = file->origin == Origin::kLinked && may_write(entry.access()) &&
                    fd_table.load(fd) == entry && still_open(*file, fd, &said);
  errno = saved_errno;
  if (good) return {file, entry, said};
  unreference(file);
  return {};
}

OpenFileRef acquire_stub(int fd) {
  OpenFileRef file = acquire(fd);
  if (file && !file.on_stub()) return {};
  return file;
}

OpenFileRef acquire_known_stub(int fd) {
  const bool known = FdTable::covers(fd) && fd_table.load(fd).is_ours();
  return known ? acquire_stub(fd) : OpenFileRef();
}

OpenFileRef acquire_open(const struct stat& st) {
  const SlowLockGuard lock(slow_lock);
  OpenFile* file = lock ? find_open(st, Access::kRead) : nullptr;
  if (file == nullptr) return {};
  OpenFileRef found(file, FdEntry::unknown(), file->said);
  if (file->origin != Origin::kStub || file->stub_fd < 0) return {};
  return found;
}

void identify_anew(const struct stat& st) {
  const SlowLockGuard lock(slow_lock);
  if (!lock) return;
  while (OpenFile* file = find_open(st, Access::kBoth)) {
    file->lost.store(true, std::memory_order_relaxed);
    unreference(file);
  }
}

bool size_if_open(const struct stat& st, uint64_t* size_bytes) {
  const SlowLockGuard lock(slow_lock);
  OpenFile* file = lock ? find_open(st, Access::kRead) : nullptr;
  if (file == nullptr) return false;
  statx_timestamp ctime = {};
  ctime.tv_sec = st.st_ctim.tv_sec;
  ctime.tv_nsec = static_cast<uint32_t>(st.st_ctim.tv_nsec);
  StubSize said;
  const bool known = file->origin == Origin::kStub &&
                     (file->stub.holds(ctime, &said) ||
                      (file->stub_fd >= 0 && read_again(*file, file->stub_fd, &said)));
  if (known) *size_bytes = size_now(*file, said);
  unreference(file);
  return known;
}

uint64_t current_size(int fd, const Layout& layout) {
  if (layout.state == FileState::kClosed) return layout.logical_size;
  const SlowLockGuard lock(slow_lock);
  return lock ? size_by_parts(fd, layout) : layout.logical_size;
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
  // A vfork() child closes its own descriptor, not the parent's.
  if (entry.is_ours() && in_vfork_child()) return;
  entry = fd_table.exchange(fd, FdEntry::unknown());
  if (entry.is_ours()) unreference(&open_file(entry.slot()));
}

// A look at the descriptor is not needed. Each close() of its number asks the mount, which ends the
// append before it answers.
OpenFileRef acquire_append(int fd) {
  const FdEntry entry = fd_table.load(fd);
  if (!entry.is_ours() || !may_write(entry.access())) return {};
  OpenFile* file = &open_file(entry.slot());
  if (!reference(file)) return {};
  if (fd_table.load(fd) == entry && file->origin == Origin::kLinked &&
      file->append_fd.load(std::memory_order_acquire) == fd &&
      file->link_epoch == process_epoch() && file->progress->is_granted()) {
    return {file, entry, file->said};
  }
  unreference(file);
  return {};
}

}  // namespace graphlane::shim
