// SplicePieces: a range of a striped file as the pieces of its parts, one a stripe
// unit, in the form in which libfuse splices.
#pragma once

#include <cstddef>

#include "fuse/ops/fuse_api.h"
#include "iomgr/io/lanes.h"

namespace graphlane {

class SplicePieces {
 public:
  // False: too many pieces; one preadv or pwritev a device is better then.
  bool cut(const StripedFile& file, ByteRange range);

  // How much of it is in the page cache of the parts, or on its way there. Before Linux 6.5
  // nobody can tell: all.
  enum class Found { kNone, kSome, kAll };
  Found in_page_cache() const;

  // Whether every part still reaches as far as its pieces; one that somebody has
  // cut would make a short reply.
  bool parts_reach(const StripedFile& file) const;

  // They have been sent: the page cache of the parts need not keep them.
  void drop() const;

  fuse_bufvec* vector() { return &head_; }
  void count(Lanes& lanes, IoOp op) const;

 private:
  static constexpr size_t kPiecesMax = 16;

  const fuse_buf& piece(size_t index) const { return index == 0 ? head_.buf[0] : rest_[index - 1]; }

  // A fuse_bufvec ends in an array of one; the rest of it lies behind.
  fuse_bufvec head_ = {};
  fuse_buf rest_[kPiecesMax - 1] = {};
  uint32_t device_index_[kPiecesMax] = {};
};

}  // namespace graphlane
