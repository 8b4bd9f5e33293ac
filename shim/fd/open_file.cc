#include "shim/fd/open_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "iomgr/base/files/file_times.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "shim/fd/open_files.h"

namespace graphlane::shim {
namespace {

void set_mtime(const OpenFile& file, const timespec& mtime) {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, mtime};
  // Only the owner may set one time alone; any writer may set both to now.
  if (::futimens(file.stub.fd, times) != 0) (void)::futimens(file.stub.fd, nullptr);
  struct stat stub;
  if (sys::fstat(file.stub.fd, &stub) == 0) {
    file.stub.mtime_set_ns.store(nanoseconds(stub.st_mtim), std::memory_order_relaxed);
  }
}

// The parts have the time of each write.
timespec last_write_of(const OpenFile& file) {
  timespec last = {};
  for (uint32_t d = 0; d < file.parts->count(); ++d) {
    struct stat part;
    if (sys::fstat(file.parts->buffered(d), &part) == 0 &&
        nanoseconds(part.st_mtim) > nanoseconds(last)) {
      last = part.st_mtim;
    }
  }
  return last;
}

}  // namespace

SmallReads* small_reads_of(int fd) {
  if (!FdTable::covers(fd)) return nullptr;
  const FdEntry entry = fd_table.load(fd);
  return entry.is_ours() && !entry.o_direct() ? &open_file(entry.slot()).small_reads : nullptr;
}

OpenFileRef::~OpenFileRef() {
  if (file_ != nullptr) unreference(file_);
}

uint64_t size_now(const OpenFile& file, const StubSize& said) {
  if (said.state == FileState::kClosed) return said.bytes;
  return std::min(said.bytes, size_of_parts(file));
}

uint64_t OpenFileRef::size() const { return size_now(*file_, said_); }

// A writer without a mount shows in its lock, and in the stub's ctime when it begins and ends. A
// writer by the mount shows in the counter. A change behind the mount shows in the ctime, once the
// kernel has updated it.
uint64_t OpenFileRef::content_generation() const {
  if (said_.ctime_ns == 0) return 0;
  const auto ctime = static_cast<uint64_t>(said_.ctime_ns);
  if (file_->origin == Origin::kMount) {
    const auto counter =
        reinterpret_cast<uintptr_t>(file_->served.counter);  // unique for this server
    return (ctime + counter) * 0x9e3779b97f4a7c15 + file_->served.generation;
  }
  const bool may_change = file_->origin != Origin::kStub || file_->stub.is_written ||
                          said_.state != FileState::kClosed ||
                          may_change_unseen(file_->stub.fd, said_.ctime_ns);
  return may_change ? 0 : ctime;
}

void note_written(const OpenFile& file) {
  if (file.stub.has_writes.exchange(true, std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  set_mtime(file, {.tv_sec = 0, .tv_nsec = UTIME_NOW});
  errno = saved_errno;
}

void show_written(const OpenFile& file) {
  if (!file.stub.has_writes.exchange(false, std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  const timespec last = last_write_of(file);
  const int64_t set_ns = file.stub.mtime_set_ns.load(std::memory_order_relaxed);
  struct stat stub;
  const bool is_known = sys::fstat(file.stub.fd, &stub) == 0;
  const bool is_changed = is_known && nanoseconds(stub.st_mtim) != set_ns;
  // A write in the tick of the kernel's clock in which the mtime was changed does not show.
  const bool is_shown =
      is_changed ? nanoseconds(last) <= nanoseconds(stub.st_ctim) : nanoseconds(last) <= set_ns;
  if (!is_known || !is_shown) set_mtime(file, last);
  errno = saved_errno;
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
                  file.stub.bytes_max.load(std::memory_order_relaxed));
}

OpenPartsOf parts_of(const OpenFile& file) {
  return {.parts = file.parts->all_buffered(),
          .roots = {},
          .volume = file.volume,
          .file_id = file.file_id,
          .geometry = file.map.geometry()};
}

}  // namespace graphlane::shim
