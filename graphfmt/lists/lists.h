// Lists: a stored graph of the format `lists` (FlashGraph §3.5), open for reading.
//
//   GRAPH/graph         the header (graph_header.h)
//   GRAPH/out.index     where each vertex's list is (list_index.h), then checksums; in memory while the graph is open
//   GRAPH/out.lists     the encoded lists of out-neighbours, vertex after vertex without a gap
//   GRAPH/out.weights   the weight of each arc, in the order of the lists, encoded, if weighted
//   GRAPH/in.*          the same of in-neighbours, if directed
//
// open() reads header and indexes and checks them: shape, sizes, checksums. The caller reads the
// lists, from plain or striped files (graph_directory.h, or a PageReader), and checks them with
// check_piece().
//
// Errors are one line: file, byte, reason. EIO: damaged; EINVAL: not a graph; ENOTSUP: of another
// kind or version.
//
// Threads: constant after open(), and then safe from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "graphfmt/buffer.h"
#include "graphfmt/codec/weight_codec.h"
#include "graphfmt/graph_directory.h"
#include "graphfmt/graph_header.h"
#include "graphfmt/list_index.h"

namespace graphlane::graphfmt {

enum class Direction { kOut, kIn };
enum class ListPart { kLists, kWeights };

// "out.lists", "in.weights" …
std::string list_file_name(Direction direction, ListPart part);
std::string list_index_name(Direction direction);

// Whether the directory has a header (of any kind, sound or not). Not a directory: false.
bool is_stored_graph(const std::string& path);

class Lists {
 public:
  static Outcome<std::unique_ptr<Lists>> open(const std::string& path);

  const std::string& path() const { return directory_.path(); }
  const GraphDirectory& directory() const { return directory_; }
  const GraphHeader& header() const { return header_; }
  const ListCodec& codec() const { return ListCodec::of(header_.codec); }
  uint64_t vertex_count() const { return header_.vertex_count; }
  bool is_weighted() const { return header_.weight != WeightKind::kNone; }

  // An undirected graph has one direction: kIn is kOut.
  const ListIndex& index(Direction direction) const { return side(direction).index; }
  // Where the direction's weights are, by arc, if it has any.
  const WeightTable& weights(Direction direction) const { return side(direction).weights; }
  // The name of the file that holds the direction's lists.
  std::string file_name(Direction direction, ListPart part = ListPart::kLists) const {
    return list_file_name(own(direction), part);
  }
  uint64_t file_bytes(Direction direction, ListPart part = ListPart::kLists) const;
  // The index's, with its checksums: what stays in memory.
  uint64_t index_bytes(Direction direction) const { return side(direction).content.size(); }

  // Pieces of a file that have a checksum each: piece i is [i, i + 1) * piece_bytes(), the last one
  // shorter.
  uint64_t piece_bytes() const { return header_.checksum_piece_bytes; }
  // `bytes` is the whole piece. EIO: it is not what was written.
  Outcome<void> check_piece(Direction direction, ListPart part, uint64_t piece,
                            std::span<const uint8_t> bytes) const;
  // As check_piece(), for a caller with an error line of its own: whether it is sound.
  bool is_sound_piece(Direction direction, ListPart part, uint64_t piece,
                      std::span<const uint8_t> bytes) const;

 private:
  struct Side {
    Buffer content;  // of the index's file
    ListIndex index;
    std::span<const uint32_t> checksums[2];  // of the pieces of lists, of weights
    WeightTable weights;
  };

  explicit Lists(GraphDirectory directory) : directory_(std::move(directory)) {}
  Direction own(Direction direction) const {
    return header_.is_directed ? direction : Direction::kOut;
  }
  const Side& side(Direction direction) const {
    return sides_[own(direction) == Direction::kOut ? 0 : 1];
  }
  Outcome<void> open_side(Direction direction);
  Outcome<void> take_checksums(Direction direction, ListPart part, std::span<const uint8_t>& rest);

  GraphDirectory directory_;
  GraphHeader header_;
  Side sides_[2];
};

}  // namespace graphlane::graphfmt
