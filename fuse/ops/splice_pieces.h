// SplicePieces: a range of a striped file as pieces of its parts, one per stripe unit, in the form
// that libfuse splices.
#pragma once

#include <cstddef>

#include "fuse/ops/fuse_api.h"
#include "iomgr/io/lanes.h"

namespace graphlane::fuse {

class SplicePieces {
 public:
  // False: there are too many pieces, and one preadv or pwritev per device is better.
  bool cut(const StripedFile& file, ByteRange range);

  // How much of the range is in the parts' page cache, or being read into it. Before Linux 6.5 the
  // kernel does not tell: kAll.
  enum class Found { kNone, kSome, kAll };
  Found in_page_cache() const;

  // Whether every part still reaches the end of its pieces; a truncated part would make the reply
  // short.
  bool parts_reach(const StripedFile& file) const;

  // Drops the pieces from the parts' page cache, after the reply.
  void drop() const;

  fuse_bufvec* vector() { return &head_; }
  void count(Lanes& lanes, IoOp op) const;

 private:
  static constexpr size_t kPiecesMax = 16;

  const fuse_buf& piece(size_t index) const { return index == 0 ? head_.buf[0] : rest_[index - 1]; }

  // A fuse_bufvec ends in an array of one; rest_ continues it.
  fuse_bufvec head_ = {};
  fuse_buf rest_[kPiecesMax - 1] = {};
  uint32_t device_index_[kPiecesMax] = {};
};

}  // namespace graphlane::fuse
