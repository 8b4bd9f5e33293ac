// Changing the bytes of plain files. A striped file is open for reading only,
// so the kernel lets no write to it come as far as this (EBADF).
#include <sys/stat.h>

#include "fuse/open_file.h"
#include "fuse/operations.h"

namespace graphlane {

int op::write_buf(Filesystem& fs, fuse_req_t req, fuse_ino_t, fuse_bufvec* data, off_t offset,
                  fuse_file_info* fi) {
  const int fd = OpenFile::of(fi).fd.get();
  fuse_bufvec host = FUSE_BUFVEC_INIT(::fuse_buf_size(data));
  host.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  host.buf[0].fd = fd;
  host.buf[0].pos = offset;
  const ssize_t written = ::fuse_buf_copy(&host, data, static_cast<fuse_buf_copy_flags>(0));
  if (written < 0) return static_cast<int>(-written);
  drop_set_id_bits(fs, req, fd);
  reply::write(req, static_cast<size_t>(written));
  return 0;
}

int op::fallocate(Filesystem& fs, fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t length,
                  fuse_file_info* fi) {
  const int fd = OpenFile::of(fi).fd.get();
  if (::fallocate(fd, mode, offset, length) != 0) return errno;
  drop_set_id_bits(fs, req, fd);
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
