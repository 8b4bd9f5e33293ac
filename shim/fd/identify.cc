// Identifies descriptors: which striped file a number is, and whether it still is that file.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <utility>

#include "iomgr/base/sys.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "shim/base/process.h"
#include "shim/base/report.h"
#include "shim/base/settings.h"
#include "shim/base/slow_lock.h"
#include "shim/fd/open_files.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

constexpr unsigned kStatMask = STATX_INO | STATX_CTIME;

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

// Does not ask the filesystem: that would cost a message now and then, and fail for a dead one.
bool look(int fd, struct statx* st) {
  return ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, kStatMask, st) == 0;
}

// Reads the size from a changed stub. False: it belongs to another file now. Under the lock.
bool read_again(OpenFile& file, int fd, StubSize* said) {
  struct statx st;
  Layout layout;
  const int readable = file.stub.fd >= 0 ? file.stub.fd : fd;
  if (!look(fd, &st) || st.stx_size != kStubSize ||
      read_stub(readable, kStubSize, &layout).value_or(StubVerdict::kNotAStub) !=
          StubVerdict::kStub ||
      layout.file_id != file.file_id) {
    file.lost.store(true, std::memory_order_relaxed);
    return false;
  }
  *said = {
      .bytes = layout.logical_size, .state = layout.state, .ctime_ns = nanoseconds(st.stx_ctime)};
  file.stub.watch.remember(st.stx_ctime, *said);
  if (file.stub.bytes_max.load(std::memory_order_relaxed) != kNoBound && file.parts->count() > 0) {
    const OpenSize open = look_at_open(layout, parts_of(file));
    if (!open.is_cut) file.stub.bytes_max.store(kNoBound, std::memory_order_relaxed);
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
  const bool known = file.origin != Origin::kStub || file.stub.watch.holds(st.stx_ctime, said);
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
  const bool o_direct = (flags & O_DIRECT) != 0;
  OpenFile* file = nullptr;
  StubSize said;
  if (access != Access::kNone && S_ISREG(st.st_mode)) {
    file = find_open(st, access);
    const bool is_new = file == nullptr;
    if (is_new) file = open_slot(fd, st, access, o_direct, std::move(stub));
    if (file != nullptr) {
      said = file->said;
      said.ctime_ns = ctime_ns_of(st);
      if (!is_new && o_direct) protect_parts(*file, o_direct);
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
  const FdEntry entry = FdEntry::ours(file->slot, o_direct, access);
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
  const bool o_direct = (flags & O_DIRECT) != 0;
  OpenFile* file = find_open(st, Access::kWrite, true);
  if (file == nullptr) file = open_link(fd, st, o_direct);
  const FdEntry entry = file == nullptr
                            ? FdEntry::foreign()
                            : FdEntry::ours(file->slot, o_direct, access_of_flags(flags));
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
    if (fd_table.load(fd) == entry && still_open(*file, fd, &said) && file->served.still_holds()) {
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

// A look at the descriptor is not needed. Each close() of its number asks the mount, which ends the
// append before it answers.
OpenFileRef acquire_append(int fd) {
  const FdEntry entry = fd_table.load(fd);
  if (!entry.is_ours() || !may_write(entry.access())) return {};
  OpenFile* file = &open_file(entry.slot());
  if (!reference(file)) return {};
  if (fd_table.load(fd) == entry && file->origin == Origin::kLinked &&
      file->link.append_fd.load(std::memory_order_acquire) == fd &&
      file->link.epoch == process_epoch() && file->link.progress->is_granted()) {
    return {file, entry, file->said};
  }
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
  if (file->origin != Origin::kStub || file->stub.fd < 0) return {};
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
                     (file->stub.watch.holds(ctime, &said) ||
                      (file->stub.fd >= 0 && read_again(*file, file->stub.fd, &said)));
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

}  // namespace graphlane::shim
