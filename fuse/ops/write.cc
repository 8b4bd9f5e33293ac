// Changes the bytes of files.
//
//   plain     spliced into the host's file
//   striped   spliced into the parts, one piece per stripe unit, in order, so that a full device ends
//             the write where a single full disk would; many small units: by the lanes, in parallel
#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

#include "fuse/inode/open_file.h"
#include "fuse/ops/operations.h"
#include "fuse/ops/splice_pieces.h"
#include "iomgr/base/process/log.h"

namespace graphlane::fuse {
namespace {

constexpr auto kNoCopyFlags = static_cast<fuse_buf_copy_flags>(0);

// The number of bytes written, and the errno of the rest.
struct Written {
  size_t count = 0;
  int error = 0;
  uint64_t offset = 0;  // striped: where
};

// For pages of a mapping (`whole`) the kernel looks at the error only, and takes a short write for
// complete. So this continues until all is written or an error occurs.
Written copy(fuse_bufvec* to, fuse_bufvec* from, bool whole) {
  const size_t size = ::fuse_buf_size(from);
  Written written;
  do {
    const ssize_t more = ::fuse_buf_copy(to, from, kNoCopyFlags);
    if (more < 0) {
      written.error = static_cast<int>(-more);
    } else if (more == 0 && whole) {
      written.error = EIO;
    } else {
      written.count += static_cast<size_t>(more);
    }
  } while (whole && written.error == 0 && written.count < size);
  return written;
}

Written write_plain(int fd, fuse_bufvec* data, off_t offset, bool whole) {
  fuse_bufvec host = FUSE_BUFVEC_INIT(::fuse_buf_size(data));
  host.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  host.buf[0].fd = fd;
  host.buf[0].pos = offset;
  return copy(&host, data, whole);
}

Written write_from_buffer(Filesystem& fs, const LiveFile& live, fuse_bufvec* data,
                          ByteRange range) {
  const RequestBuffers::Loan loan(fs.request_buffers);
  void* const buffer = loan.get();
  fuse_bufvec memory = FUSE_BUFVEC_INIT(range.length_bytes);
  memory.buf[0].mem = buffer;
  const ssize_t got = ::fuse_buf_copy(&memory, data, kNoCopyFlags);
  if (got < 0) return {.error = static_cast<int>(-got)};
  range.length_bytes = static_cast<uint64_t>(got);
  const int error = fs.lanes->write(live.writable(), range, buffer, /*direct=*/false);
  if (error < 0) return {.error = -error};
  return {.count = range.length_bytes};
}

// `at_end`: at the end of the file, which the kernel may not know.
Written write_striped(Filesystem& fs, LiveFile& live, fuse_bufvec* data, off_t offset, bool whole,
                      bool at_end) {
  ByteRange range{.offset = static_cast<uint64_t>(offset), .length_bytes = ::fuse_buf_size(data)};
  LiveFile::Write write(live, range);
  const Result<void> ready = at_end ? write.begin_at_end() : write.begin();
  if (!ready) return {.error = ready.error().code};
  range.offset = write.offset();
  Written written;
  SplicePieces pieces;
  if (pieces.cut(live.writable(), range)) {
    written = copy(pieces.vector(), data, whole);
    if (written.count > 0) pieces.count(*fs.lanes, IoOp::kWrite);
  } else {
    written = write_from_buffer(fs, live, data, range);
  }
  write.end(range.offset + written.count);
  if (written.count > 0) live.touch();
  written.offset = range.offset;
  return written;
}

// O_SYNC, O_DSYNC, RWF_DSYNC and `-o sync`: the kernel sends an fsync after a write through the
// page cache, but not after a direct one. The host does it for a plain file with that flag. 0 or an
// errno.
int sync_as_asked(OpenFile& file, int flags) {
  if (!file.direct_io || (flags & O_DSYNC) == 0) return 0;
  const int asked = flags & O_SYNC;  // O_SYNC contains the bit of O_DSYNC
  if (!file.live && (::fcntl(file.fd.get(), F_GETFL) & asked) == asked) return 0;
  return file.sync(/*data_only=*/(flags & O_SYNC) != O_SYNC);
}

}  // namespace

int op::write_buf(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_bufvec* data, off_t offset,
                  fuse_file_info* fi) {
  OpenFile& file = OpenFile::of(fi);
  if (file.appends && fi->writepage) return EPERM;  // a mapped page cannot be appended
  const bool whole = fi->writepage;
  const bool appends = file.live && !whole && (fi->flags & O_APPEND) != 0;
  Inode* const appended = appends ? &file.kept->inode() : nullptr;  // without the table's lock
  std::optional<ChangeUnderWay> change(appended);
  const bool at_end = appends && appended->was_appended.load();
  const Written written = file.live ? write_striped(fs, *file.live, data, offset, whole, at_end)
                                    : write_plain(file.fd.get(), data, offset, whole);
  if (written.error != 0) return written.error;
  drop_set_id_bits(fs, req, file.host_fd());
  if (const int error = sync_as_asked(file, fi->flags); error != 0) return error;
  // Pages where the kernel took the end to be. After the reply, because it holds them until then.
  const bool drops = at_end && !file.direct_io && written.offset != static_cast<uint64_t>(offset);
  change.reset();  // once the write is answered, the kernel may forget the inode
  reply::write(req, written.count);
  if (drops) {
    (void)::fuse_lowlevel_notify_inval_inode(fs.session, ino, offset,
                                             static_cast<off_t>(written.count));
  }
  return 0;
}

int op::fallocate(Filesystem& fs, fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t length,
                  fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
  if (file.live) {
    const ByteRange range{.offset = static_cast<uint64_t>(offset),
                          .length_bytes = static_cast<uint64_t>(length)};
    if (Result<void> done = file.live->allocate(mode, range); !done) return done.error().code;
    file.live->touch();
  } else if (::fallocate(file.fd.get(), mode, offset, length) != 0) {
    return errno;
  }
  drop_set_id_bits(fs, req, file.host_fd());
  return answer_result(req, 0);
}

int op::copy_file_range(Filesystem& fs, fuse_req_t req, fuse_ino_t, off_t in_offset,
                        fuse_file_info* in_fi, fuse_ino_t, off_t out_offset, fuse_file_info* out_fi,
                        size_t length, int flags) {
  const OpenFile& in = OpenFile::of(in_fi);
  const OpenFile& out = OpenFile::of(out_fi);
  if (in.striped || out.striped) return EOPNOTSUPP;  // the kernel reads and writes instead
  const ssize_t copied = ::copy_file_range(in.fd.get(), &in_offset, out.fd.get(), &out_offset,
                                           length, static_cast<unsigned>(flags));
  if (copied < 0) return errno;
  drop_set_id_bits(fs, req, out.fd.get());
  reply::write(req, static_cast<size_t>(copied));
  return 0;
}

}  // namespace graphlane::fuse
