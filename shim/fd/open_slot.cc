// Opens a striped file: locates its parts, and fills its slot.
#include <algorithm>
#include <utility>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "shim/base/process.h"
#include "shim/base/report.h"
#include "shim/base/settings.h"
#include "shim/base/slow_lock.h"
#include "shim/base/sum_failures.h"
#include "shim/fd/open_files.h"
#include "shim/locate/foresight.h"
#include "shim/locate/stub_path.h"
#include "shim/read/queues.h"
#include "shim/share/mapped_pages.h"
#include "shim/write/writer.h"

namespace graphlane::shim {
namespace {

// A reader of a file larger than this share of the free memory prepares to share it.
constexpr uint64_t kRoomFactor = 4;

// The stub's descriptor that holds the file, opened before the stub is read. Empty: not a stub, or
// it may not be opened (errno). A file that is no stub is not opened at all: its close would end
// the program's record locks, and a process that waits for such a lock would block here.
Fd hold_stub(int fd, const struct stat& st, Access access, Fd stub) {
  if (lies_on_fuse(fd) || !claims_to_be_stub(fd, static_cast<uint64_t>(st.st_size))) return {};
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

// Decides how a file with parts is read.
void begin_reading(OpenFile* file, int fd, const Located& located, bool o_direct) {
  file->map = located.layout.map();
  const bool only_read = !file->stub.is_written && file->link.fd < 0;
  const IoMode mode = settings().io_mode;
  const uint64_t size = size_now(*file, file->said);
  const uint64_t available = only_read && mode == IoMode::kAuto ? memory_available_bytes() : 0;
  if (only_read) file->state.fit = fit_in_memory(mode, size, available);
  protect_parts(*file, o_direct);
  for (uint32_t d = 0; d < file->parts->count(); ++d) {
    file->counters[d] = counters_of_device(located_device(d));
    if (located.counts != nullptr) file->counters[d]->mirror_to(&located.counts[d]);
    file->gates[d] = gate_of(file->parts->buffered(d), located_device(d));
    if (file->gates[d] != nullptr) file->counters[d]->depth = file->gates[d]->width();
  }
  file->state.on_disks = file->gates[0] != nullptr && file->gates[0]->seeks();
  if (file->origin != Origin::kMount) return;
  ReadState grown = file->state_of(o_direct);
  if (only_read) grown.fit = fit_in_memory(mode, kRoomFactor * size, available);
  if (settings().shares && (bypasses_page_cache(grown) || settings().maps)) {
    file->sharing.begin(ask_mount_to_share, fd, file->served.generation, file->said.bytes);
    if (wants_permit(*file)) permit_mapping(*file, ask_mount_to_map(fd));
  }
  if (!bypasses_page_cache(file->state)) {
    file->small_reads.begin(served_counter(file->served.counter),
                            &file->file_counters->small_count);
  }
}

// Fills a slot with the located file, with one reference.
void fill_slot(OpenFile* file, int fd, const struct stat& st, const Located& located,
               bool o_direct) {
  file->device_number = st.st_dev;
  file->inode = st.st_ino;
  file->origin = located.origin;
  file->error = located.error;
  file->volume = located.layout.volume;
  file->file_id = located.layout.file_id;
  file->said = {.bytes = located.layout.logical_size, .state = located.layout.state};
  file->file_counters = counters_of_file(fd, located.origin);
  file->state = {.mode = settings().io_mode, .maps = settings().maps};
  file->served = {.counter = located.counter, .generation = located.generation};
  // Relaxed: references publishes them.
  file->lost.store(is_passing(located.error), std::memory_order_relaxed);
  file->stub.has_writes.store(false, std::memory_order_relaxed);
  file->stub.grown.store(false, std::memory_order_relaxed);
  file->stub.told.store(false, std::memory_order_relaxed);
  file->stub.bytes_max.store(located.bytes_max, std::memory_order_relaxed);
  file->stub.watch.remember(located.stub_ctime, file->said);
  file->sharing.fits.store(true, std::memory_order_relaxed);
  file->sharing.looked_ms.store(0, std::memory_order_relaxed);
  if (file->parts->count() > 0) begin_reading(file, fd, located, o_direct);
  file->references.store(1, std::memory_order_relaxed);
  file->in_use.store(true, std::memory_order_release);
}

}  // namespace

OpenFile* open_slot(int fd, const struct stat& st, Access access, bool o_direct, Fd stub) {
  OpenFile* file = take_slot();
  if (file == nullptr) return nullptr;
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
  Located located = locate(fd, st, access, file->parts);
  if (located.origin == Origin::kForeign) {
    end_slot(file);
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
    file->stub.is_written = may_write(access);
    file->stub.fd = keep_internal(std::move(held));
  }
  fill_slot(file, fd, st, located, o_direct);
  return file;
}

OpenFile* open_link(int fd, const struct stat& st, bool o_direct) {
  OpenFile* file = take_slot();
  if (file == nullptr) return nullptr;
  Fd connection;
  const Located located = locate_to_write(fd, file->parts, &connection, &file->link.progress);
  if (located.origin != Origin::kLinked) {
    file->link.unmap();
    end_slot(file);
    return nullptr;
  }
  file->link.life = located.life;
  file->link.append_fd.store(-1, std::memory_order_relaxed);
  file->link.append_pause = file->link.append_count = file->link.append_skips = 0;
  file->link.append_limit = 0;
  file->link.fd = keep_internal(std::move(connection));
  file->link.epoch = process_epoch();
  file->link.busy.store(false, std::memory_order_relaxed);  // references publishes it
  fill_slot(file, fd, st, located, o_direct);
  return file;
}

}  // namespace graphlane::shim
