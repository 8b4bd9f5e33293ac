// Reads.
//
//   plain     spliced from the host's file
//   striped   as iomgr/read/plan.h says: what the parts' page cache has is spliced, one piece per
//             stripe unit; the rest is read into the worker's buffer, through the mount's cache or
//             by the lanes
//
// A reply is never short before the end of the file, because the kernel would fill up with zeros,
// which look like edges.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "fuse/inode/open_file.h"
#include "fuse/ops/operations.h"
#include "fuse/ops/splice_pieces.h"
#include "iomgr/base/process/log.h"
#include "iomgr/read/plan.h"
#include "iomgr/volume/stub/stub_lock.h"

namespace graphlane::fuse {
namespace {

int read_plain(fuse_req_t req, int fd, size_t size, off_t offset) {
  fuse_bufvec data = FUSE_BUFVEC_INIT(size);
  data.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  data.buf[0].fd = fd;
  data.buf[0].pos = offset;
  reply::data(req, &data);
  return 0;
}

// While this value stays the same, so do the file's bytes; 0: the file may be changing. Read it
// before the bytes. A writer of this mount moves the generation. A writer elsewhere holds the
// stub's lock, and changes the stub's ctime when it has finished.
uint64_t content_generation(Filesystem& fs, const StripedFile& file) {
  const Uuid& file_id = file.layout().file_id;
  const uint64_t generation = fs.live.generations().of(file_id);
  struct stat stub;
  if (fs.live.has_writers(file_id) || ::fstat(file.held_stub(), &stub) != 0) return 0;
  const int64_t ctime_ns = ctime_ns_of(stub);
  // Locks of this mount's own writers stay for a while.
  const bool may_change =
      fs.live.has(file_id) ? is_fresh(ctime_ns) : may_change_unseen(file.held_stub(), ctime_ns);
  return may_change ? 0 : static_cast<uint64_t>(ctime_ns) * 0x9e3779b97f4a7c15 + generation;
}

// Reads through the mount's cache. Nothing: the file may be changing, or the cache declines.
std::optional<size_t> read_cached(Filesystem& fs, fuse_req_t req, const OpenFile& open_file,
                                  ReadPlan::Arrival arrival, ByteRange range, void* buffer) {
  const StripedFile& file = *open_file.striped;
  const uint64_t generation = content_generation(fs, file);
  if (generation == 0) return {};
  LaneEngine engine(*fs.lanes, open_file.striped);
  const ExtentFile extents{.file_id = file.layout().file_id,
                           .generation = generation,
                           .size_bytes = file.size(),
                           .map = file.map(),
                           .parts = file.parts()};
  // a thread's id, despite its name
  const auto thread = static_cast<uint32_t>(::fuse_req_ctx(req)->pid);
  switch (arrival) {
    case ReadPlan::Arrival::kWhole: return fs.extents.read(extents, range, buffer, engine);
    case ReadPlan::Arrival::kParts: return fs.extents.read_part(extents, range, buffer, engine);
    case ReadPlan::Arrival::kInTurn:
      return fs.extents.read_in_turn(extents, thread, range, buffer, engine);
  }
  return {};
}

int read_into_buffer(Filesystem& fs, fuse_req_t req, const OpenFile& file, const ReadPlan& plan,
                     ByteRange range) {
  const RequestBuffers::Loan loan(fs.request_buffers);
  void* const buffer = loan.get();
  std::optional<size_t> hit;
  if (plan.source == ReadPlan::Source::kCache)
    hit = read_cached(fs, req, file, plan.arrival, range, buffer);
  const ssize_t got =
      hit ? static_cast<ssize_t>(*hit) : fs.lanes->read(*file.striped, range, buffer, plan.bypass);
  if (got < 0) {
    log_line("{}: read of {} bytes at {}: {}", file.striped->name(), range.length_bytes,
             range.offset, std::strerror(static_cast<int>(-got)));
    return static_cast<int>(-got);
  }
  reply::buf(req, static_cast<const char*>(buffer), static_cast<size_t>(got));
  return 0;
}

// The daemon does not see what it splices. So bytes to be verified are copied, by this thread: the
// processor's cache still has them when they are verified and sent.
int read_verified(Filesystem& fs, fuse_req_t req, const StripedFile& file, ByteRange range) {
  const RequestBuffers::Loan loan(fs.request_buffers);
  const Piece piece{.range = range, .buffer = loan.get()};
  const PartRequest request{.map = file.map(),
                            .parts = file.parts(),
                            .size_bytes = file.size(),
                            .op = IoOp::kRead,
                            .pieces = {&piece, 1}};
  RequestCutter cutter(request);
  for (LaneIo io; cutter.next(&io);) {
    const int error = move_now(&io);
    if (error == 0) continue;
    log_line("{}: read of {} bytes at {}: {}", file.name(), range.length_bytes, range.offset,
             std::strerror(error));
    return error;
  }
  reply::buf(req, static_cast<const char*>(loan.get()), range.length_bytes);
  return 0;
}

int read_range(Filesystem& fs, fuse_req_t req, const OpenFile& file, ReadPlan plan,
               ByteRange range) {
  SplicePieces pieces;
  if (!plan.peeks || !pieces.cut(*file.striped, range)) {
    return read_into_buffer(fs, req, file, plan, range);
  }
  const bool drops = plan.source != ReadPlan::Source::kPageCache;
  const SplicePieces::Found found = pieces.in_page_cache();
  int error = 0;
  if (found == SplicePieces::Found::kAll) {
    if (!pieces.parts_reach(*file.striped)) return EIO;
    pieces.count(*fs.lanes, IoOp::kRead);
    if (file.state.verifies) {
      error = read_verified(fs, req, *file.striped, range);
    } else {
      reply::data(req, pieces.vector());
    }
  } else {
    // Workers that splice missing pages would read them in the order in which they woke. If some
    // are there, the buffered read brings the rest.
    if (found == SplicePieces::Found::kSome) {
      plan.source = ReadPlan::Source::kPageCache;
      plan.bypass = false;
    }
    error = read_into_buffer(fs, req, file, plan, range);
  }
  if (drops && found != SplicePieces::Found::kNone) pieces.drop();
  return error;
}

int read_striped(Filesystem& fs, fuse_req_t req, const OpenFile& file, const ReadPlan& plan,
                 ByteRange range) {
  for (;;) {
    const uint64_t size = file.striped->size();
    const uint64_t left = range.offset < size ? size - range.offset : 0;
    range.length_bytes = std::min(range.length_bytes, left);
    if (range.length_bytes == 0) return reply::buf(req, nullptr, 0), 0;
    const int error = read_range(fs, req, file, plan, range);
    // A concurrent truncation: the new end counts.
    if (error != EIO || file.striped->size() >= range.end()) return error;
  }
}

// Remembers the sizes of reads, for the next handle (read_sizes.h).
void note_sizes(Filesystem& fs, Inode& inode, OpenFile& file, uint64_t size) {
  if (file.state.in_turn) {
    file.read_sizes.add(size);
    if (fs.page_sweepers.load(std::memory_order_relaxed) == 0) {
      fs.extents.set_beside_page_cache(false);
    }
  } else if (file.state.leaves_pages() && file.read_sizes.shows_large(size, fs.read_bytes_max)) {
    inode.last_read.set(/*large=*/true);
    fs.last_read.set(/*large=*/true);
  }
}

ReadPlan plan_of(Filesystem& fs, Inode& inode, const OpenFile& file, ByteRange range) {
  // Files that fit by themselves may not fit together.
  if (file.state.depends_on_others()) fs.sweeps.count(range.length_bytes);
  return plan(file.state,
              {.length_bytes = range.length_bytes,
               .request_max_bytes = fs.read_bytes_max,
               .to_end = range.end() >= file.striped->size(),
               .alone = !fs.sweeps.has_several_files(),
               .has_writer = inode.writer_count.load(std::memory_order_acquire) > 0,
               .one_handle = inode.open_once()},
              {.together = fs.sweeps.fit()});
}

}  // namespace

int op::read(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
             fuse_file_info* fi) {
  OpenFile& file = OpenFile::of(fi);
  if (!file.striped) return read_plain(req, file.fd.get(), size, offset);
  if (size > fs.read_bytes_max) return EIO;  // never: ops/init.cc
  fs.live.count_served(file.striped->layout().file_id);
  const ByteRange range{.offset = static_cast<uint64_t>(offset), .length_bytes = size};
  Inode& inode = file.kept->inode();  // without the table's lock
  note_sizes(fs, inode, file, size);
  const ReadPlan plan = plan_of(fs, inode, file, range);
  // Must precede the reply, because the caller may close the file after it.
  if (plan.drop == ReadPlan::Drop::kBehindSweep)
    fs.drop_behind.add_read(ino, range, fs.sweeps.kept_bytes());
  if (plan.prefetch != ReadPlan::Prefetch::kSweep) return read_striped(fs, req, file, plan, range);
  // A reference of its own, because the caller may close the file after the reply.
  const std::shared_ptr<StripedFile> striped = file.striped;
  fs.sweeps.arrive(*striped, range);
  const int error = read_striped(fs, req, file, plan, range);
  if (error == 0) fs.sweeps.prefetch_next(*striped, range);
  return error;
}

// The kernel asks for SEEK_DATA and SEEK_HOLE only. It does not tell what a mapping has changed, so
// while one may exist, all is data.
int op::lseek(Filesystem&, fuse_req_t req, fuse_ino_t, off_t offset, int whence,
              fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
  if (file.live) (void)file.live->settle();
  off_t found;
  if (file.kept && file.kept->inode().mapper_count.load(std::memory_order_acquire) > 0) {
    struct stat st = {};
    if (file.striped) {
      st.st_size = static_cast<off_t>(file.striped->size());
    } else if (::fstat(file.fd.get(), &st) != 0) {
      return errno;
    }
    if (offset < 0 || offset >= st.st_size) return ENXIO;
    found = whence == SEEK_DATA ? offset : st.st_size;
  } else if (file.striped) {
    if (offset < 0) return ENXIO;
    const Result<uint64_t> at = file.striped->seek(static_cast<uint64_t>(offset), whence);
    if (!at) return at.error().code;
    found = static_cast<off_t>(*at);
  } else {
    found = ::lseek(file.fd.get(), offset, whence);
  }
  if (found < 0) return errno;
  reply::lseek(req, found);
  return 0;
}

}  // namespace graphlane::fuse
