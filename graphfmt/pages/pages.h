// Pages: a stored graph of the format `pages` (MaiterStore §3.2): adjacency lists by key.
//
//   GRAPH/graph        the header (graph_header.h)
//   GRAPH/out.pages    a finished store (page_store.h): the key is a vertex, the value its list of out-neighbours
//   GRAPH/in.pages     the same of in-neighbours, if directed
//
// A vertex without neighbours has no key. A value is the encoded list (codec.h). With weights it is
// the list's length in bytes (uint32), the list, and its encoded weights (weight_codec.h).
//
// Errors are one line: file, page or byte, reason. EIO: damaged; EINVAL: not a graph; ENOTSUP: of
// another kind.
//
// Threads: does not change once it is open.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "graphfmt/codec/weight_codec.h"
#include "graphfmt/graph_directory.h"
#include "graphfmt/graph_header.h"
#include "graphfmt/lists/lists.h"
#include "graphfmt/pages/page_store.h"

namespace graphlane::graphfmt {

// "out.pages", "in.pages".
std::string pages_file_name(Direction direction);

// The parts of a value. `weights` has no codes where there are none.
struct ListValue {
  std::span<const uint8_t> list;
  ValueWeights weights;
  size_t neighbour_count = 0;
};

class Pages {
 public:
  static Outcome<std::unique_ptr<Pages>> open(const std::string& path);

  const std::string& path() const { return directory_.path(); }
  const GraphHeader& header() const { return header_; }
  const ListCodec& codec() const { return ListCodec::of(header_.codec); }
  uint64_t vertex_count() const { return header_.vertex_count; }
  bool is_weighted() const { return header_.weight != WeightKind::kNone; }

  // An undirected graph has one direction: kIn is kOut.
  const PageStore& store(Direction direction) const {
    return *stores_[own(direction) == Direction::kOut ? 0 : 1];
  }
  std::string file_name(Direction direction) const { return pages_file_name(own(direction)); }

  // EIO, without a text: no list has these bytes.
  Result<ListValue> parse_value(std::span<const uint8_t> value) const;
  // The neighbours; list.size() is neighbour_count.
  Result<void> decode(const ListValue& value, std::span<uint32_t> list) const {
    return codec().decode(value.list, list, vertex_count());
  }

 private:
  explicit Pages(GraphDirectory directory) : directory_(std::move(directory)) {}
  Direction own(Direction direction) const {
    return header_.is_directed ? direction : Direction::kOut;
  }
  Outcome<void> open_side(Direction direction);

  GraphDirectory directory_;
  GraphHeader header_;
  std::unique_ptr<PageStore> stores_[2];
};

}  // namespace graphlane::graphfmt
