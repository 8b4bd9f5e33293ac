#include "shim/fd/open_files.h"

#include <new>

#include "shim/base/slow_lock.h"
#include "shim/write/writer.h"

namespace graphlane::shim {

constinit FdTable fd_table;
constinit SlowLock slow_lock;

namespace {

// Files open at once; more are served by FUSE, or fail without a mount.
constexpr uint32_t kOpenFileMax = 4096;

// Zero pages; a slot touches its page only once it is used, so that small programs touch few.
struct alignas(OpenFile) FileStorage {
  unsigned char bytes[sizeof(OpenFile)];
} file_storage[kOpenFileMax];
struct alignas(PartFiles) PartStorage {
  unsigned char bytes[sizeof(PartFiles)];
} part_storage[kOpenFileMax];
std::atomic<uint32_t> slots_used{0};  // slots that were ever taken

// A slot that was never used, or is free again; null: none.
OpenFile* find_slot() {
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

void protect_fd(int fd) { set_entry(fd, FdEntry::internal()); }

// For programs that end without close(2): promises the present size of their files until the
// machine stops. Frees nothing, because other threads may still read and write.
__attribute__((destructor)) void note_what_is_open() {
  const uint32_t used = slots_used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    OpenFile& file = open_file(i);
    if (!file.in_use.load(std::memory_order_acquire) || !reference(&file)) continue;
    if (file.origin == Origin::kStub && file.stub.is_written) {
      note_closed(file);
      show_written(file);
    }
    unreference(&file);
  }
}

}  // namespace

OpenFile& open_file(uint32_t slot) {
  return *std::launder(reinterpret_cast<OpenFile*>(file_storage[slot].bytes));
}

bool reference(OpenFile* file) {
  uint32_t count = file->references.load(std::memory_order_relaxed);
  while (count > 0) {
    if (file->references.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void unreference(OpenFile* file) {
  // Release and acquire: the last reference sees the effects of all others.
  if (file->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (file->origin == Origin::kStub && file->stub.is_written) {
    note_closed(*file);
    show_written(*file);  // before the parts, which tell the time
  }
  for (uint32_t d = 0; d < file->parts->count(); ++d) {
    set_entry(file->parts->buffered(d), FdEntry::unknown());
    set_entry(file->parts->direct_if_open(d), FdEntry::unknown());
    if (file->parts->sums().fd(d) >= 0) set_entry(file->parts->sums().fd(d), FdEntry::unknown());
  }
  file->parts->~PartFiles();
  file->sharing.end();
  file->small_reads.end();
  if (file->stub.fd >= 0) drop_internal(file->stub.fd);
  file->link.unmap();
  if (file->link.fd >= 0) drop_internal(file->link.fd);
  file->in_use.store(false, std::memory_order_release);
}

OpenFile* find_open(const struct stat& st, Access access, bool linked) {
  const uint32_t used = slots_used.load(std::memory_order_relaxed);
  OpenFile* read_only = nullptr;
  for (uint32_t i = 0; i < used; ++i) {
    OpenFile& file = open_file(i);
    if (!file.in_use.load(std::memory_order_acquire) || !reference(&file)) continue;
    const bool same = file.device_number == st.st_dev && file.inode == st.st_ino &&
                      (file.origin == Origin::kLinked) == linked;
    // A failure to write does not concern a reader.
    const bool is_of_use =
        file.origin != Origin::kDamaged || !file.stub.is_written || may_write(access);
    const bool is_good = same && is_of_use && !file.lost.load(std::memory_order_relaxed) &&
                         file.served.still_holds();
    const bool is_read_only = file.origin == Origin::kStub && !file.stub.is_written;
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

OpenFile* take_slot() {
  OpenFile* const file = find_slot();
  if (file == nullptr) return nullptr;
  file->stub.fd = file->link.fd = -1;
  file->stub.is_written = false;
  file->link.progress = nullptr;
  file->parts = new (part_storage[file->slot].bytes) PartFiles(internal_fd_floor(), protect_fd);
  return file;
}

void end_slot(OpenFile* file) { file->parts->~PartFiles(); }

void protect_parts(const OpenFile& file, bool o_direct) {
  const PartFiles& parts = *file.parts;
  const bool bypasses = bypasses_page_cache(file.state_of(o_direct));
  for (uint32_t d = 0; d < parts.count(); ++d) {
    protect_fd(parts.buffered(d));
    if (parts.sums().fd(d) >= 0) protect_fd(parts.sums().fd(d));
    if (bypasses) parts.direct(d);
  }
}

}  // namespace graphlane::shim
