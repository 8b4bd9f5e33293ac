// Reading.
//
//   plain             spliced from the host's file
//   striped, cached   spliced from the parts, one piece a stripe unit
//   striped, direct   read by the lanes into the worker's buffer
//
// A reply is never short before the end of the file: the kernel would fill up
// with zeros, which look like edges.
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "fuse/log.h"
#include "fuse/open_file.h"
#include "fuse/operations.h"
#include "fuse/read_buffer.h"

namespace graphlane {
namespace {

// A request in more pieces than this is better read with one preadv a device.
constexpr size_t kSplicePiecesMax = 16;

struct SplicePieces {
  // A fuse_bufvec ends in an array of one; the rest of it lies behind.
  fuse_bufvec head = {};
  fuse_buf rest[kSplicePiecesMax - 1] = {};

  fuse_buf& add() {
    const size_t index = head.count++;
    return index == 0 ? head.buf[0] : rest[index - 1];
  }
};
static_assert(offsetof(SplicePieces, rest) == offsetof(fuse_bufvec, buf) + sizeof(fuse_buf));

int read_plain(fuse_req_t req, int fd, size_t size, off_t offset) {
  fuse_bufvec data = FUSE_BUFVEC_INIT(size);
  data.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  data.buf[0].fd = fd;
  data.buf[0].pos = offset;
  reply::data(req, &data);
  return 0;
}

// Whether the part still reaches to `end`; one that somebody cut since it was
// opened would make a short reply.
bool reaches(const StripedFile& file, uint32_t device_index, uint64_t end) {
  struct stat st;
  if (::fstat(file.parts().buffered(device_index), &st) == 0 &&
      static_cast<uint64_t>(st.st_size) >= end) {
    return true;
  }
  log_line("{}: part on device {} is shorter than {} bytes", file.name(), device_index, end);
  return false;
}

// 0, or an errno; false in *fits: too many pieces.
int splice_pieces(const StripedFile& file, ByteRange range, SplicePieces* pieces, bool* fits) {
  *fits = true;
  while (range.length_bytes > 0) {
    if (pieces->head.count == kSplicePiecesMax) {
      *fits = false;
      return 0;
    }
    const Segment segment = file.map().first_segment(range);
    if (!reaches(file, segment.device_index, segment.part_offset + segment.length_bytes)) {
      return EIO;
    }
    fuse_buf& piece = pieces->add();
    piece.size = segment.length_bytes;
    piece.flags =
        static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY);
    piece.fd = file.parts().buffered(segment.device_index);
    piece.pos = static_cast<off_t>(segment.part_offset);
    range.offset += segment.length_bytes;
    range.length_bytes -= segment.length_bytes;
  }
  return 0;
}

void count_pieces(Filesystem& fs, const StripedFile& file, ByteRange range) {
  while (range.length_bytes > 0) {
    const Segment segment = file.map().first_segment(range);
    fs.lanes->count_read(segment.device_index, segment.length_bytes);
    range.offset += segment.length_bytes;
    range.length_bytes -= segment.length_bytes;
  }
}

int read_into_buffer(Filesystem& fs, fuse_req_t req, const OpenFile& file, ByteRange range) {
  void* buffer = ReadBuffer::of_this_thread(kRequestMax);
  const ssize_t got = fs.lanes->read(*file.striped, range, buffer, file.direct);
  if (got < 0) {
    log_line("{}: read of {} bytes at {}: {}", file.striped->name(), range.length_bytes,
             range.offset, std::strerror(static_cast<int>(-got)));
    return static_cast<int>(-got);
  }
  reply::buf(req, static_cast<const char*>(buffer), static_cast<size_t>(got));
  return 0;
}

int read_striped(Filesystem& fs, fuse_req_t req, const OpenFile& file, ByteRange range) {
  const StripedFile& striped = *file.striped;
  const uint64_t left = range.offset < striped.size() ? striped.size() - range.offset : 0;
  range.length_bytes = std::min(range.length_bytes, left);
  if (range.length_bytes == 0) return reply::buf(req, nullptr, 0), 0;
  if (file.direct) return read_into_buffer(fs, req, file, range);
  SplicePieces pieces;
  bool fits;
  if (const int error = splice_pieces(striped, range, &pieces, &fits); error != 0) return error;
  if (!fits) return read_into_buffer(fs, req, file, range);
  count_pieces(fs, striped, range);
  reply::data(req, &pieces.head);
  return 0;
}

}  // namespace

int op::read(Filesystem& fs, fuse_req_t req, fuse_ino_t, size_t size, off_t offset,
             fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
  if (!file.striped) return read_plain(req, file.fd.get(), size, offset);
  if (size > kRequestMax) return EIO;  // never: op_init.cc
  return read_striped(fs, req, file,
                      {.offset = static_cast<uint64_t>(offset), .length_bytes = size});
}

// The kernel asks only for SEEK_DATA and SEEK_HOLE. A striped file shows none
// of its holes.
int op::lseek(Filesystem&, fuse_req_t req, fuse_ino_t, off_t offset, int whence,
              fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
  off_t found;
  if (file.striped) {
    const off_t size = static_cast<off_t>(file.striped->size());
    if (offset < 0 || offset >= size) return ENXIO;
    found = whence == SEEK_HOLE ? size : offset;
  } else {
    found = ::lseek(file.fd.get(), offset, whence);
  }
  if (found < 0) return errno;
  reply::lseek(req, found);
  return 0;
}

}  // namespace graphlane
