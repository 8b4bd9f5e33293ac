// Changing the bytes of files.
//
//   plain     spliced into the host's file
//   striped   spliced into the parts, one piece a stripe unit, in their order, so
//             that a device that is full ends the write where it would end on a
//             disk of its own; many small units: by the lanes, all at once
#include <sys/stat.h>

#include <algorithm>

#include "fuse/open_file.h"
#include "fuse/operations.h"
#include "fuse/request_buffer.h"
#include "fuse/splice_pieces.h"
#include "iomgr/log.h"

namespace graphlane {
namespace {

constexpr auto kNoCopyFlags = static_cast<fuse_buf_copy_flags>(0);

ssize_t write_plain(int fd, fuse_bufvec* data, off_t offset) {
  fuse_bufvec host = FUSE_BUFVEC_INIT(::fuse_buf_size(data));
  host.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  host.buf[0].fd = fd;
  host.buf[0].pos = offset;
  return ::fuse_buf_copy(&host, data, kNoCopyFlags);
}

ssize_t write_from_buffer(Filesystem& fs, const LiveFile& live, fuse_bufvec* data,
                          ByteRange range) {
  void* buffer = RequestBuffer::of_this_thread(fs.read_bytes_max);
  fuse_bufvec memory = FUSE_BUFVEC_INIT(range.length_bytes);
  memory.buf[0].mem = buffer;
  const ssize_t got = ::fuse_buf_copy(&memory, data, kNoCopyFlags);
  if (got < 0) return got;
  range.length_bytes = static_cast<uint64_t>(got);
  const int error = fs.lanes->write(live.writable(), range, buffer, /*direct=*/false);
  return error < 0 ? error : got;
}

// Bytes written, or -errno.
ssize_t write_striped(Filesystem& fs, LiveFile& live, fuse_bufvec* data, off_t offset) {
  const ByteRange range{.offset = static_cast<uint64_t>(offset),
                        .length_bytes = ::fuse_buf_size(data)};
  LiveFile::Write write(live, range);
  if (Result<void> ready = write.begin(); !ready) return -ready.error().code;
  ssize_t written;
  SplicePieces pieces;
  if (pieces.cut(live.writable(), range)) {
    written = ::fuse_buf_copy(pieces.vector(), data, kNoCopyFlags);
    if (written > 0) pieces.count(*fs.lanes, IoOp::kWrite);
  } else {
    written = write_from_buffer(fs, live, data, range);
  }
  write.end(range.offset + static_cast<uint64_t>(std::max<ssize_t>(written, 0)));
  if (written > 0) live.touch();
  return written;
}

}  // namespace

int op::write_buf(Filesystem& fs, fuse_req_t req, fuse_ino_t, fuse_bufvec* data, off_t offset,
                  fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
  if (file.appends && fi->writepage) return EPERM;  // a map's page has its place, not at the end
  const ssize_t written = file.live ? write_striped(fs, *file.live, data, offset)
                                    : write_plain(file.fd.get(), data, offset);
  if (written < 0) return static_cast<int>(-written);
  drop_set_id_bits(fs, req, file.host_fd());
  reply::write(req, static_cast<size_t>(written));
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
                        fuse_file_info* in_fi, fuse_ino_t, off_t out_offset,
                        fuse_file_info* out_fi, size_t length, int flags) {
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

}  // namespace graphlane
