#include "fuse/splice_pieces.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuse/log.h"

namespace graphlane {
namespace {

// cachestat(2) of Linux 6.5, which older headers do not know; the number is every processor's.
constexpr long kCachestatCall = 451;
struct CachestatRange {
  uint64_t offset;
  uint64_t length_bytes;
};
struct Cachestat {
  uint64_t cached_pages;
  uint64_t dirty_pages;
  uint64_t writeback_pages;
  uint64_t evicted_pages;
  uint64_t recently_evicted_pages;
};

}  // namespace

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

bool SplicePieces::in_page_cache() const {
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < head_.count; ++i) {
    const uint64_t begin = static_cast<uint64_t>(piece(i).pos) / page * page;
    const uint64_t length = static_cast<uint64_t>(piece(i).pos) + piece(i).size - begin;
    CachestatRange range{.offset = begin, .length_bytes = length};
    Cachestat found;
    if (::syscall(kCachestatCall, piece(i).fd, &range, &found, 0u) != 0) continue;
    if (found.cached_pages < (length + page - 1) / page) return false;
  }
  return true;
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

void SplicePieces::count(Lanes& lanes, IoOp op) const {
  for (size_t i = 0; i < head_.count; ++i) lanes.count(op, device_index_[i], piece(i).size);
}

}  // namespace graphlane
