#include "fuse/ops/splice_pieces.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "iomgr/base/cachestat.h"
#include "iomgr/base/process/log.h"

namespace graphlane::fuse {
bool SplicePieces::cut(const StripedFile& file, ByteRange range) {
  static_assert(offsetof(SplicePieces, rest_) ==
                offsetof(SplicePieces, head_) + offsetof(fuse_bufvec, buf) + sizeof(fuse_buf));
  head_.count = 0;
  while (range.length_bytes > 0) {
    if (head_.count == kPiecesMax) return false;
    const Segment segment = file.map().first_segment(range);
    device_index_[head_.count] = segment.device_index;
    fuse_buf& piece = head_.count == 0 ? head_.buf[0] : rest_[head_.count - 1];
    piece.size = segment.length_bytes;
    piece.flags =
        static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY);
    piece.fd = file.parts().buffered(segment.device_index);
    piece.pos = static_cast<off_t>(segment.part_offset);
    head_.count += 1;
    range.offset += segment.length_bytes;
    range.length_bytes -= segment.length_bytes;
  }
  return true;
}

SplicePieces::Found SplicePieces::in_page_cache() const {
  uint64_t cached = 0, all = 0;
  for (size_t i = 0; i < head_.count; ++i) {
    const auto begin = static_cast<uint64_t>(piece(i).pos);
    const auto pages = pages_cached(piece(i).fd, begin, piece(i).size);
    if (!pages) return Found::kAll;
    cached += pages->cached;
    all += pages->all;
  }
  return cached == all ? Found::kAll : cached == 0 ? Found::kNone : Found::kSome;
}

bool SplicePieces::parts_reach(const StripedFile& file) const {
  for (size_t i = 0; i < head_.count; ++i) {
    const auto end = piece(i).pos + static_cast<off_t>(piece(i).size);
    struct stat st;
    if (::fstat(piece(i).fd, &st) == 0 && st.st_size >= end) continue;
    log_line("{}: part on device {} is shorter than {} bytes", file.name(), device_index_[i], end);
    return false;
  }
  return true;
}

void SplicePieces::drop() const {
  for (size_t i = 0; i < head_.count; ++i) {
    (void)::posix_fadvise(piece(i).fd, piece(i).pos, static_cast<off_t>(piece(i).size),
                          POSIX_FADV_DONTNEED);
  }
}

void SplicePieces::count(Lanes& lanes, IoOp op) const {
  for (size_t i = 0; i < head_.count; ++i) lanes.count(op, device_index_[i], piece(i).size);
}

}  // namespace graphlane::fuse
