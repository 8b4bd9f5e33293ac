// Reads.
//
//   plain             spliced from the host's file
//   striped, fits     if the parts' page cache has it: spliced, one piece per stripe unit;
//                     else read by the lanes into the worker's buffer, through that page
//                     cache or past it
//   striped, larger   through the mount's cache, or by the lanes, past the parts' page cache
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
#include "iomgr/volume/stub/stub_lock.h"

namespace graphlane {
namespace {

int read_plain(fuse_req_t req, int fd, size_t size, off_t offset) {
  fuse_bufvec data = FUSE_BUFVEC_INIT(size);
  data.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  data.buf[0].fd = fd;
  data.buf[0].pos = offset;
  reply::data(req, &data);
  return 0;
}

// `direct`: the parts are read past their page cache. `fits`: the mount's page cache has room for
// the bytes.
struct CachePolicy {
  bool direct;
  bool fits;
};

// As the file was opened, and as all open files together fit.
CachePolicy cache_policy_of(const Filesystem& fs, const OpenFile& file) {
  return {.direct = file.direct || !fs.sweeps.fit_twice(),
          .fits = (file.fits || !file.direct) && fs.sweeps.fit()};
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

// Reads through the mount's cache, unless the file may be changing or the kernel keeps the bytes. A
// request near the maximum is one of several in flight for one read of the program (O_DIRECT, or
// the kernel's read-ahead). Smaller ones come one after the other.
ssize_t read_past_page_cache(Filesystem& fs, fuse_req_t req, const OpenFile& open_file,
                             CachePolicy policy, ByteRange range, void* buffer) {
  const StripedFile& file = *open_file.striped;
  const uint64_t generation = policy.fits ? 0 : content_generation(fs, file);
  if (generation != 0) {
    LaneEngine engine(*fs.lanes, open_file.striped);
    const ExtentFile extents{.file_id = file.layout().file_id,
                             .generation = generation,
                             .size_bytes = file.size(),
                             .map = file.map(),
                             .parts = file.parts()};
    const bool is_part = range.length_bytes >= fs.read_bytes_max / 2;
    // a thread's id, despite its name
    const auto thread = static_cast<uint32_t>(::fuse_req_ctx(req)->pid);
    const std::optional<size_t> got =
        open_file.in_turn ? fs.extents.read_in_turn(extents, thread, range, buffer, engine)
        : is_part         ? fs.extents.read_part(extents, range, buffer, engine)
                          : fs.extents.read(extents, range, buffer, engine);
    if (got) return static_cast<ssize_t>(*got);
  }
  // Without the mount's pages, small pieces that come again soon stay in the parts' page cache.
  const bool small_in_turn = open_file.in_turn && ReadSizes::is_small(range.length_bytes);
  return fs.lanes->read(file, range, buffer, /*direct=*/!small_in_turn);
}

int read_into_buffer(Filesystem& fs, fuse_req_t req, const OpenFile& file, CachePolicy policy,
                     ByteRange range) {
  const RequestBuffers::Loan loan(fs.request_buffers);
  void* const buffer = loan.get();
  const ssize_t got = policy.direct
                          ? read_past_page_cache(fs, req, file, policy, range, buffer)
                          : fs.lanes->read(*file.striped, range, buffer, /*direct=*/false);
  if (got < 0) {
    log_line("{}: read of {} bytes at {}: {}", file.striped->name(), range.length_bytes,
             range.offset, std::strerror(static_cast<int>(-got)));
    return static_cast<int>(-got);
  }
  reply::buf(req, static_cast<const char*>(buffer), static_cast<size_t>(got));
  return 0;
}

int read_range(Filesystem& fs, fuse_req_t req, const OpenFile& file, ByteRange range) {
  CachePolicy policy = cache_policy_of(fs, file);
  // If the file does not fit, the page cache can hold only prefetched ranges.
  const bool may_be_there =
      !policy.direct || (!file.o_direct && (policy.fits || !file.leaves_pages()));
  SplicePieces pieces;
  // The daemon does not see bytes that it splices, so it cannot verify them.
  const bool verifies = file.striped->parts().sums().verifies();
  if (verifies || !may_be_there || !pieces.cut(*file.striped, range)) {
    return read_into_buffer(fs, req, file, policy, range);
  }
  // After the reply the mount has the pages.
  const bool drops = policy.direct;
  const SplicePieces::Found found = pieces.in_page_cache();
  int error = 0;
  if (found == SplicePieces::Found::kAll) {
    if (!pieces.parts_reach(*file.striped)) return EIO;
    pieces.count(*fs.lanes, IoOp::kRead);
    reply::data(req, pieces.vector());
  } else {
    // Workers that splice missing pages would read them in the order in which they woke. If some
    // are there, the buffered read brings the rest.
    policy.direct = policy.direct && found == SplicePieces::Found::kNone;
    error = read_into_buffer(fs, req, file, policy, range);
  }
  if (drops && found != SplicePieces::Found::kNone) pieces.drop();
  return error;
}

int read_striped(Filesystem& fs, fuse_req_t req, const OpenFile& file, ByteRange range) {
  for (;;) {
    const uint64_t size = file.striped->size();
    const uint64_t left = range.offset < size ? size - range.offset : 0;
    range.length_bytes = std::min(range.length_bytes, left);
    if (range.length_bytes == 0) return reply::buf(req, nullptr, 0), 0;
    const int error = read_range(fs, req, file, range);
    // A concurrent truncation: the new end counts.
    if (error != EIO || file.striped->size() >= range.end()) return error;
  }
}

}  // namespace

int op::read(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
             fuse_file_info* fi) {
  OpenFile& file = OpenFile::of(fi);
  if (!file.striped) return read_plain(req, file.fd.get(), size, offset);
  if (size > fs.read_bytes_max) return EIO;  // never: ops/init.cc
  fs.live.count_served(file.striped->layout().file_id);
  const ByteRange range{.offset = static_cast<uint64_t>(offset), .length_bytes = size};
  // Must precede the reply, because the caller may close the file after it. Skipped while another
  // handle is open, which may want the pages. Skipped with a writer: if a page were dropped while a
  // write of it is in flight, a read would bring back the old bytes.
  Inode& inode = file.kept->inode();  // without the table's lock
  const bool has_no_writer = inode.writer_count.load(std::memory_order_acquire) == 0;
  if (file.in_turn) {
    file.read_sizes.add(size);
    if (fs.page_sweepers.load(std::memory_order_relaxed) == 0) {
      fs.extents.set_beside_page_cache(false);
    }
  } else if (file.leaves_pages() && file.read_sizes.shows_large(size, fs.read_bytes_max)) {
    inode.last_read.set(/*large=*/true);
    fs.last_read.set(/*large=*/true);
  }
  if (file.sweeps_page_cache() && has_no_writer && inode.open_once()) {
    fs.drop_behind.passed(ino, range, fs.sweeps.kept_bytes());
  }
  if (file.o_direct || file.leaves_pages()) return read_striped(fs, req, file, range);
  // A reference of its own, because the caller may close the file after the reply.
  const std::shared_ptr<StripedFile> striped = file.striped;
  fs.sweeps.arrive(*striped, range);
  if (!fs.sweeps.fit() && has_no_writer) {
    fs.drop_behind.passed(ino, range, fs.sweeps.kept_bytes());
  }
  const int error = read_striped(fs, req, file, range);
  if (error == 0) fs.sweeps.prefetch_next(*striped, range);
  return error;
}

// The kernel asks for SEEK_DATA and SEEK_HOLE only. It does not tell what a mapping has changed, so
// while one may exist, all is data.
int op::lseek(Filesystem&, fuse_req_t req, fuse_ino_t, off_t offset, int whence,
              fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
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

}  // namespace graphlane
