// Dual: a stored graph of the format `dual` (HUS-Graph §3.2, §3.3), open for reading.
//
//   GRAPH/graph         the header (graph_header.h), with P
//   GRAPH/degrees       of each vertex the out-arcs (byte_column.h)
//   GRAPH/blocks        of each block the sizes; then the checksums of all other files' pieces; in memory while it is open
//   GRAPH/out.blocks    out-blocks, row after row: of each its index (list_index.h), then its lists
//   GRAPH/in.blocks     in-blocks, column after column, if directed
//   GRAPH/out.weights, in.weights    the weight of each arc, in the order of the lists, encoded, if weighted
//
//            neighbours in interval 0   1   2
//   lists of interval 0     | 0,0 | 0,1 | 0,2 |     A block is (own, other): it has the lists of the vertices of `own`,
//                    1      | 1,0 | 1,1 | 1,2 |     and of each list the neighbours in `other`. So out-block (i, j) is
//                    2      | 2,0 | 2,1 | 2,2 |     (i, j) of the side `out`, and in-block (i, j) is (j, i) of `in`.
//
// An undirected graph has one side, as out-block (j, i) holds in-block (i, j). Within a block,
// vertices and neighbours count from the beginnings of their intervals.
//
// open() reads header and table and checks them. Blocks are for the caller to read, and to check
// with is_sound_piece().
//
// Errors are one line: file, byte, reason. EIO: damaged; EINVAL: not a graph; ENOTSUP: of another
// kind or version.
//
// Threads: does not change once it is open; any may use it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graphfmt/buffer.h"
#include "graphfmt/codec/weight_codec.h"
#include "graphfmt/dual/dual_geometry.h"
#include "graphfmt/graph_directory.h"
#include "graphfmt/graph_header.h"
#include "graphfmt/list_index.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::graphfmt {

enum class DualSide { kOut = 0, kIn = 1 };
enum class DualPart { kBlocks = 0, kWeights = 1 };

inline constexpr char kDualTableFile[] = "blocks";
inline constexpr char kDualDegreesFile[] = "degrees";
// "out.blocks", "in.weights" …
std::string dual_file_name(DualSide side, DualPart part);

// The columns of a block's index: one byte a list. Degrees stand beside lengths only where weights
// need them; with groups, one for each group. `simd` has them too: it is there for speed, and
// counting takes as long as decoding.
constexpr ListIndexShape dual_index_shape(CodecKind codec, bool is_weighted) {
  const bool is_raw = codec == CodecKind::kRaw;
  return {.is_sparse = true,
          .has_degrees = is_raw || codec == CodecKind::kSimd || is_weighted,
          .has_lengths = !is_raw,
          .has_arc_starts = is_raw || is_weighted,
          .is_derived = true,
          .has_groups = codec == CodecKind::kReference};
}

// The sizes of a block, as the table has them. A block without arcs has no bytes.
struct DualBlockSizes {
  uint64_t index_bytes = 0;  // a multiple of 8
  uint64_t lists_bytes = 0;  // behind the index, and then zeros to a multiple of 8
  uint64_t arc_count = 0;
};
static_assert(sizeof(DualBlockSizes) == 24);

// Places in the side's files.
struct DualBlock {
  ByteRange index;
  ByteRange lists;
  uint64_t arc_count = 0;
  uint64_t first_arc = 0;  // of the side's arcs: which weights are its
};

// How many out-arcs each vertex has. Takes a byte a vertex.
class DualDegrees {
 public:
  // Gives those of the vertices from `first` on.
  void copy(uint64_t first, std::span<uint32_t> to) const {
    for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<uint32_t>(column_[first + i]);
  }

 private:
  friend class Dual;
  Buffer bytes_;
  ByteColumn column_;
};

class Dual {
 public:
  static Outcome<std::unique_ptr<Dual>> open(const std::string& path);

  const std::string& path() const { return directory_.path(); }
  const GraphDirectory& directory() const { return directory_; }
  const GraphHeader& header() const { return header_; }
  const DualGeometry& geometry() const { return geometry_; }
  const ListCodec& codec() const { return ListCodec::of(header_.codec); }
  ListIndexShape index_shape() const { return dual_index_shape(header_.codec, is_weighted()); }
  bool is_weighted() const { return header_.weight != WeightKind::kNone; }
  bool is_directed() const { return header_.is_directed; }

  // An undirected graph has one side: kIn is kOut.
  const DualBlock& block(DualSide side, uint32_t own, uint32_t other) const {
    return this->side(side).blocks[uint64_t{own} * geometry_.partitions() + other];
  }
  std::string file_name(DualSide side, DualPart part) const {
    return dual_file_name(own_side(side), part);
  }
  uint64_t file_bytes(DualSide side, DualPart part) const;
  // Sums over all blocks of a side.
  uint64_t index_bytes(DualSide side) const { return this->side(side).index_bytes; }
  uint64_t lists_bytes(DualSide side) const { return this->side(side).lists_bytes; }
  // Where the side's weights are, by arc, if it has any.
  const WeightTable& weights(DualSide side) const { return this->side(side).weights; }

  // Reads the number of each vertex's out-arcs. EIO: damaged.
  Outcome<DualDegrees> read_degrees() const;
  // The block's index from its bytes, which begin at a multiple of 8 and outlive it. EIO: damaged.
  Outcome<ListIndex> parse_index(DualSide side, uint32_t own, uint32_t other,
                                 std::span<const uint8_t> bytes) const;

  // Pieces of a file that have a checksum each: piece i is [i, i + 1) * piece_bytes(), the last one
  // shorter.
  uint64_t piece_bytes() const { return header_.checksum_piece_bytes; }
  // `bytes` is the whole piece: whether it is what was written.
  bool is_sound_piece(DualSide side, DualPart part, uint64_t piece,
                      std::span<const uint8_t> bytes) const;

 private:
  struct Side {
    std::vector<DualBlock> blocks;
    uint64_t index_bytes = 0;
    uint64_t lists_bytes = 0;
    std::span<const uint32_t> checksums[2];  // by DualPart
    WeightTable weights;
  };

  explicit Dual(GraphDirectory directory) : directory_(std::move(directory)) {}
  DualSide own_side(DualSide side) const { return header_.is_directed ? side : DualSide::kOut; }
  const Side& side(DualSide side) const { return sides_[own_side(side) == DualSide::kOut ? 0 : 1]; }
  Outcome<void> read_header();
  Outcome<void> read_table();
  Outcome<void> take_side(DualSide side, std::span<const uint8_t>& rest);
  Outcome<void> take_checksums(DualSide side, DualPart part, uint64_t expected,
                               std::span<const uint8_t>& rest);

  GraphDirectory directory_;
  GraphHeader header_;
  DualGeometry geometry_;
  Buffer table_;
  Side sides_[2];
};

}  // namespace graphlane::graphfmt
