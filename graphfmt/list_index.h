// ListIndex: the place and length of each vertex's list in a file of lists, in one or two bytes a
// list.
//
//   dense    degree    a byte a vertex               (byte_column.h)
//            length    compressed codecs: another    of the encoded list; raw: 4 × degree
//            starts    every 32nd list's place
//   sparse   bitmap    of the vertices that have a list, with the rank of every 256th
//            degree, length   of those alone; a block of `dual` has only what it needs
//   groups   length    one for all lists of so many vertices, where the codec has groups (codec.h)
//
// In bytes, little endian: a head of 48 bytes, the bitmap if sparse, the columns. FORMAT.md has an
// example.
//
// degree() and place() read memory only. All places are within lists_bytes(): parse() checks every
// list.
//
// Threads: does not change once it is parsed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "graphfmt/byte_column.h"
#include "graphfmt/codec/codec.h"
#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

// Vertices of a group. Each has one length, if any of its vertices has a list.
inline constexpr uint32_t kIndexGroupVertices = 32;

// The end of a range of whole groups of so many vertices, which begins with `first`: the last one
// up to `end`, or the first group's. The last group of all may have fewer vertices.
constexpr uint64_t whole_groups_end(uint64_t first, uint64_t end, uint64_t vertex_count,
                                    uint64_t group_vertices) {
  if (end == vertex_count) return end;
  const uint64_t down = end / group_vertices * group_vertices;
  return down > first ? down : std::min(first + group_vertices, vertex_count);
}

struct ListPlace {
  uint64_t offset = 0;        // of the encoded list, in its file
  uint64_t length_bytes = 0;  // 0: no neighbours
  friend bool operator==(const ListPlace&, const ListPlace&) = default;
};

// The columns that an index has beside the lists' places.
struct ListIndexShape {
  bool is_sparse = false;
  // false: the codec's count() finds it in the list. With groups, a degree is that of a group
  bool has_degrees = true;
  bool has_lengths = false;    // false: lists are raw
  bool has_arc_starts = true;  // for weights beside the lists, and for raw lists
  bool is_derived = false;     // ranks and starts are not stored: parse() computes them
  // a length for each kIndexGroupVertices vertices; only if sparse, derived, with lengths
  bool has_groups = false;
  friend bool operator==(const ListIndexShape&, const ListIndexShape&) = default;
};

// The columns that an index of `codec` needs.
constexpr ListIndexShape list_index_shape(CodecKind codec, bool is_weighted,
                                          bool is_sparse = false) {
  const bool is_raw = codec == CodecKind::kRaw;
  return {.is_sparse = is_sparse,
          .has_degrees = true,
          .has_lengths = !is_raw,
          .has_arc_starts = is_raw || is_weighted};
}

// Whether these bytes begin an index, and a sparse one.
bool is_sparse_index(std::span<const uint8_t> bytes);

class ListIndex {
 public:
  ListIndex() = default;

  // From the front of `bytes`, which starts at a multiple of 8 and outlives the index; moves
  // `bytes` behind it. Errors call it `what`, and name the byte from `base` on. EIO: damaged, or of
  // another shape.
  static Outcome<ListIndex> parse(std::span<const uint8_t>& bytes, const ListIndexShape& shape,
                                  const std::string& what, uint64_t base = 0);

  uint64_t vertex_count() const { return vertex_count_; }
  uint64_t arc_count() const { return arc_count_; }
  uint64_t lists_bytes() const { return lists_bytes_; }
  const ListIndexShape& shape() const { return shape_; }

  // Vertices are below vertex_count(). degree(): only with has_degrees, without groups.
  uint64_t degree(uint32_t vertex) const {
    const uint64_t item = item_of(vertex);
    return item == kNoItem ? 0 : degrees_[item];
  }
  uint64_t bytes(uint32_t vertex) const {
    const uint64_t item = item_of(vertex);
    if (shape_.has_groups) return place(vertex).length_bytes;
    return item == kNoItem ? 0 : item_bytes(item);
  }
  // With groups, of the vertex's group.
  ListPlace place(uint32_t vertex) const {
    const uint64_t item = item_of(vertex);
    if (item == kNoItem) return {};
    if (shape_.has_groups) {
      return {.offset = group_offset(vertex), .length_bytes = lengths_[group_rank(vertex)]};
    }
    return {.offset = item_offset(item), .length_bytes = item_bytes(item)};
  }
  // Only with has_arc_starts: the arcs of all lists before that of `vertex`; with groups, before that of its group.
  // It and offset() may be asked of vertex_count() too: the end of all.
  uint64_t first_arc(uint64_t vertex) const {
    if (!shape_.has_groups) return degrees_.sum_before(rank(vertex));
    return vertex == vertex_count_ ? arc_count_ : degrees_.sum_before(group_rank(vertex));
  }
  // Likewise: how many arcs the vertex, which has a list, or all of its group have.
  uint64_t arcs(uint32_t vertex) const {
    return degrees_[shape_.has_groups ? group_rank(vertex) : item_of(vertex)];
  }
  // The place where the list of `vertex` is, or would be; with groups, that of its group.
  uint64_t offset(uint64_t vertex) const {
    return shape_.has_groups ? group_offset(vertex) : item_offset(rank(vertex));
  }
  // The first vertex from `vertex` on that may have a list; vertex_count(): none. For a dense
  // index, `vertex` itself.
  uint64_t next_candidate(uint64_t vertex) const;

  // visit(vertex, place, degree) for each vertex of [first, end) that has a list, ascending: with
  // no search for each. `degree` is 0 without has_degrees, and with groups. With groups, `first` begins one, and the
  // place is that of the group.
  template <class Visit>
  void scan(uint64_t first, uint64_t end, const Visit& visit) const;

  // With groups: decodes the lists of [first, end), which are whole groups, from their bytes.
  // Neighbours are below `limit`. `vertices` gets those that have a list; `starts` and `neighbours`
  // grow as decode_group() says. EIO: damaged; `vertices` ends with the damaged group.
  Result<void> decode_groups(const ListCodec& codec, uint64_t first, uint64_t end,
                             const uint8_t* bytes, uint64_t limit, std::vector<uint32_t>& vertices,
                             std::vector<uint32_t>& starts,
                             std::vector<uint32_t>& neighbours) const;

 private:
  static constexpr uint64_t kNoItem = ~uint64_t{0};
  static constexpr uint64_t kRankBits = 256;

  bool has_list(uint64_t vertex) const { return (bitmap_[vertex / 64] >> vertex % 64 & 1) != 0; }
  // How many items come before `vertex`.
  uint64_t rank(uint64_t vertex) const {
    if (!shape_.is_sparse) return vertex;
    uint64_t rank = ranks()[vertex / kRankBits];
    for (uint64_t word = vertex / kRankBits * (kRankBits / 64); word < vertex / 64; ++word) {
      rank += static_cast<uint64_t>(__builtin_popcountll(bitmap_[word]));
    }
    const uint64_t below = (uint64_t{1} << vertex % 64) - 1;
    return below == 0
               ? rank
               : rank + static_cast<uint64_t>(__builtin_popcountll(bitmap_[vertex / 64] & below));
  }
  uint64_t item_of(uint64_t vertex) const {
    if (!shape_.is_sparse) return vertex;
    return has_list(vertex) ? rank(vertex) : kNoItem;
  }
  // How many groups that have a list come before that of `vertex`.
  uint64_t group_rank(uint64_t vertex) const {
    uint64_t rank = group_ranks_[vertex / kRankBits];
    for (uint64_t word = vertex / kRankBits * (kRankBits / 64); word < vertex / 64; ++word) {
      rank += groups_in(bitmap_[word]);
    }
    return rank +
           (vertex % 64 >= kIndexGroupVertices && static_cast<uint32_t>(bitmap_[vertex / 64]) != 0
                ? 1
                : 0);
  }
  static uint64_t groups_in(uint64_t word) {
    return (static_cast<uint32_t>(word) != 0 ? 1 : 0) + (word >> 32 != 0 ? 1 : 0);
  }
  uint64_t group_offset(uint64_t vertex) const {
    return vertex == vertex_count_ ? lengths_.total() : lengths_.sum_before(group_rank(vertex));
  }
  uint64_t item_bytes(uint64_t item) const {
    return shape_.has_lengths ? lengths_[item] : degrees_[item] * sizeof(uint32_t);
  }
  uint64_t item_offset(uint64_t item) const {
    return shape_.has_lengths ? lengths_.sum_before(item)
                              : degrees_.sum_before(item) * sizeof(uint32_t);
  }
  const uint32_t* ranks() const { return ranks_ != nullptr ? ranks_ : derived_ranks_.data(); }
  Outcome<void> parse_bitmap(std::span<const uint8_t>& bytes, uint64_t list_count,
                             const std::string& what, uint64_t at);
  // Fills group_ranks_.
  uint64_t count_groups();

  ListIndexShape shape_;
  uint64_t vertex_count_ = 0;
  uint64_t arc_count_ = 0;
  uint64_t lists_bytes_ = 0;
  const uint64_t* bitmap_ = nullptr;
  const uint32_t* ranks_ = nullptr;  // that are stored
  std::vector<uint32_t> derived_ranks_;
  std::vector<uint32_t> group_ranks_;  // with groups: groups before every 256th vertex
  ByteColumn degrees_;
  ByteColumn lengths_;
};

// Makes an index, list after list, ascending. For a dense one, memory is a byte or two a vertex.
class ListIndexBuilder {
 public:
  explicit ListIndexBuilder(const ListIndexShape& shape);

  // The next list that is not empty. Vertices between have none. With groups, without its length.
  void append(uint32_t vertex, uint64_t degree, uint64_t length_bytes);
  // With groups: the length and the arcs of the next group that has a list.
  void append_group(uint64_t length_bytes, uint64_t arcs);
  // Vertices after the last list have none.
  void finish(uint64_t vertex_count);

  uint64_t arc_count() const { return arc_count_; }
  uint64_t lists_bytes() const { return lists_bytes_; }
  uint64_t memory_bytes() const;
  // After finish().
  uint64_t size_bytes() const;
  Outcome<void> write(const ByteColumnBuilder::Write& write) const;

 private:
  void skip_to(uint64_t vertex);
  Outcome<void> write_ranks(const ByteColumnBuilder::Write& write) const;

  const ListIndexShape shape_;
  uint64_t vertex_count_ = 0;  // so far
  uint64_t list_count_ = 0;
  uint64_t arc_count_ = 0;
  uint64_t lists_bytes_ = 0;
  std::vector<uint64_t> bitmap_;
  ByteColumnBuilder degrees_;
  ByteColumnBuilder lengths_;
};

inline uint64_t ListIndex::next_candidate(uint64_t vertex) const {
  if (!shape_.is_sparse || vertex >= vertex_count_) return vertex;
  uint64_t bits = bitmap_[vertex / 64] & ~uint64_t{0} << vertex % 64;
  for (uint64_t word = vertex / 64; bits == 0; bits = bitmap_[word]) {
    if (++word * 64 >= vertex_count_) return vertex_count_;
    vertex = word * 64;
  }
  return vertex / 64 * 64 + static_cast<unsigned>(__builtin_ctzll(bits));
}

template <class Visit>
void ListIndex::scan(uint64_t first, uint64_t end, const Visit& visit) const {
  if (shape_.has_groups) {
    uint64_t group = group_rank(first);
    ListPlace place{.offset = group_offset(first), .length_bytes = 0};
    for (uint64_t at = first; at < end; at += kIndexGroupVertices) {
      uint64_t bits = static_cast<uint32_t>(bitmap_[at / 64] >> at % 64);
      if (end - at < kIndexGroupVertices) bits &= (uint64_t{1} << (end - at)) - 1;
      if (bits == 0) continue;
      place = {.offset = place.offset + place.length_bytes, .length_bytes = lengths_[group++]};
      for (; bits != 0; bits &= bits - 1) {
        visit(static_cast<uint32_t>(at + static_cast<unsigned>(__builtin_ctzll(bits))), place,
              uint64_t{0});
      }
    }
    return;
  }
  uint64_t item = rank(first);
  uint64_t offset = item_offset(item);
  const auto one = [&](uint64_t vertex) {
    const uint64_t degree = shape_.has_degrees ? degrees_[item] : 0;
    const uint64_t length = shape_.has_lengths ? lengths_[item] : degree * sizeof(uint32_t);
    ++item;
    if (length != 0) visit(static_cast<uint32_t>(vertex), ListPlace{offset, length}, degree);
    offset += length;
  };
  if (!shape_.is_sparse) {
    for (uint64_t vertex = first; vertex < end; ++vertex) one(vertex);
    return;
  }
  for (uint64_t word = first / 64; word * 64 < end; ++word) {
    uint64_t bits = bitmap_[word];
    if (word == first / 64) bits &= ~uint64_t{0} << first % 64;
    if (end - word * 64 < 64) bits &= (uint64_t{1} << (end - word * 64)) - 1;
    for (; bits != 0; bits &= bits - 1) {
      one(word * 64 + static_cast<unsigned>(__builtin_ctzll(bits)));
    }
  }
}

}  // namespace graphlane::graphfmt
