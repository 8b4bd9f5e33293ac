#include "graphfmt/list_index.h"

#include <cstring>

#include "graphfmt/graph_header.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::graphfmt {
namespace {

// The head of an index.
struct ListIndexHead {
  uint64_t vertex_count;
  uint64_t list_count;  // items of the columns: vertices, or sparse those that have a list
  uint32_t flags;
  uint32_t reserved[3];  // 0
  uint64_t arc_count;
  uint64_t lists_bytes;
};
static_assert(sizeof(ListIndexHead) == 48);

enum : uint32_t {
  kIndexSparse = 1,
  kIndexDegrees = 2,
  kIndexLengths = 4,
  kIndexArcStarts = 8,
  kIndexDerived = 16,
  kIndexGroups = 32
};

uint32_t flags_of(const ListIndexShape& shape) {
  return (shape.is_sparse ? kIndexSparse : 0u) | (shape.has_degrees ? kIndexDegrees : 0u) |
         (shape.has_lengths ? kIndexLengths : 0u) | (shape.has_arc_starts ? kIndexArcStarts : 0u) |
         (shape.is_derived ? kIndexDerived : 0u) | (shape.has_groups ? kIndexGroups : 0u);
}

constexpr uint64_t kIndexRankBits = 256;
// A rank for every 256 vertices, and padding.
constexpr uint64_t rank_bytes(uint64_t vertex_count) {
  return round_up(4 * (vertex_count / kIndexRankBits + 1), 8);
}
// A bit more than there are vertices, so that rank(vertex_count) can be asked for.
constexpr uint64_t bitmap_words(uint64_t vertex_count) { return vertex_count / 64 + 1; }

}  // namespace

bool is_sparse_index(std::span<const uint8_t> bytes) {
  ListIndexHead head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  return (head.flags & kIndexSparse) != 0;
}

Outcome<ListIndex> ListIndex::parse(std::span<const uint8_t>& bytes, const ListIndexShape& shape,
                                    const std::string& what, uint64_t base) {
  const size_t given = bytes.size();
  ListIndexHead head;
  if (given < sizeof head) {
    return make_error(EIO, "{}: byte {}: ends here, in the head of an index", what, base + given);
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  const auto at = [&] { return base + given - bytes.size(); };
  if (head.flags != flags_of(shape) || head.reserved[0] != 0 || head.reserved[1] != 0 ||
      head.reserved[2] != 0) {
    return make_error(EIO, "{}: byte {}: an index of another shape: {:#x}, expected {:#x}", what,
                      base + 16, head.flags, flags_of(shape));
  }
  if (head.vertex_count > kListVertexCountMax || head.list_count > head.vertex_count ||
      (!shape.is_sparse && head.list_count != head.vertex_count)) {
    return make_error(EIO, "{}: byte {}: {} vertices, {} lists", what, base, head.vertex_count,
                      head.list_count);
  }
  ListIndex index;
  index.shape_ = shape;
  index.vertex_count_ = head.vertex_count;
  index.arc_count_ = head.arc_count;
  index.lists_bytes_ = head.lists_bytes;
  const ColumnStarts starts = shape.is_derived ? ColumnStarts::kDerived : ColumnStarts::kStored;
  if (shape.is_sparse) {
    if (auto parsed = index.parse_bitmap(bytes, head.list_count, what, at()); !parsed) {
      return parsed.error();
    }
  }
  const uint64_t count = shape.has_groups ? index.count_groups() : head.list_count;
  if (shape.has_degrees) {
    auto column = ByteColumn::parse(
        bytes, count, shape.has_arc_starts ? starts : ColumnStarts::kNone, what, at());
    if (!column) return column.error();
    index.degrees_ = std::move(*column);
    if (index.degrees_.total() != head.arc_count) {
      return make_error(EIO, "{}: byte {}: {} arcs, but the degrees' sum is {}", what, base + 32,
                        head.arc_count, index.degrees_.total());
    }
  }
  if (shape.has_lengths) {
    auto column = ByteColumn::parse(bytes, count, starts, what, at());
    if (!column) return column.error();
    index.lengths_ = std::move(*column);
  }
  const uint64_t total =
      shape.has_lengths ? index.lengths_.total() : index.degrees_.total() * sizeof(uint32_t);
  if (total != head.lists_bytes) {
    return make_error(EIO, "{}: byte {}: {} bytes, but the lists have {}", what, base + 40,
                      head.lists_bytes, total);
  }
  return index;
}

Outcome<void> ListIndex::parse_bitmap(std::span<const uint8_t>& bytes, uint64_t list_count,
                                      const std::string& what, uint64_t at) {
  const uint64_t words = bitmap_words(vertex_count_);
  const uint64_t size = words * 8 + (shape_.is_derived ? 0 : rank_bytes(vertex_count_));
  if (bytes.size() < size) {
    return make_error(EIO, "{}: byte {}: ends here, in a bitmap of {} vertices", what,
                      at + bytes.size(), vertex_count_);
  }
  bitmap_ = reinterpret_cast<const uint64_t*>(bytes.data());
  if (!shape_.is_derived) ranks_ = reinterpret_cast<const uint32_t*>(bytes.data() + words * 8);
  bytes = bytes.subspan(size);
  uint64_t rank = 0;
  for (uint64_t word = 0; word < words; ++word) {
    if (word % (kRankBits / 64) == 0 && shape_.is_derived) {
      derived_ranks_.push_back(static_cast<uint32_t>(rank));
    } else if (word % (kRankBits / 64) == 0 && ranks_[word / (kRankBits / 64)] != rank) {
      return make_error(EIO, "{}: byte {}: not the number of lists before", what,
                        at + words * 8 + word / (kRankBits / 64) * 4);
    }
    rank += static_cast<uint64_t>(__builtin_popcountll(bitmap_[word]));
  }
  const uint64_t rank_count = vertex_count_ / kRankBits + 1;
  const bool padded = shape_.is_derived || rank_count % 2 == 0 || ranks_[rank_count] == 0;
  if (rank != list_count || bitmap_[words - 1] >> vertex_count_ % 64 != 0 || !padded) {
    return make_error(EIO, "{}: byte {}: a bitmap of {} lists, expected {}", what, at, rank,
                      list_count);
  }
  return {};
}

uint64_t ListIndex::count_groups() {
  uint64_t count = 0;
  for (uint64_t word = 0; word < bitmap_words(vertex_count_); ++word) {
    if (word % (kRankBits / 64) == 0) group_ranks_.push_back(static_cast<uint32_t>(count));
    count += groups_in(bitmap_[word]);
  }
  return count;
}

Result<void> ListIndex::decode_groups(const ListCodec& codec, uint64_t first, uint64_t end,
                                      const uint8_t* bytes, uint64_t limit,
                                      std::vector<uint32_t>& vertices,
                                      std::vector<uint32_t>& starts,
                                      std::vector<uint32_t>& neighbours) const {
  const size_t first_list = starts.size() - 1;
  for (uint64_t at = first; at < end; at += kIndexGroupVertices) {
    const size_t begin = vertices.size();
    ListPlace place;
    scan(at, std::min(at + kIndexGroupVertices, end),
         [&](uint32_t vertex, const ListPlace& of_group, uint64_t) {
           place = of_group;
           vertices.push_back(vertex);
         });
    if (vertices.size() == begin) continue;
    const std::span<const uint32_t> group(vertices.data() + begin, vertices.size() - begin);
    const uint64_t arcs_before = starts.back();
    const uint64_t arcs_max =
        arc_count_ - std::min<uint64_t>(arc_count_, arcs_before - starts[first_list]);
    if (auto done = codec.decode_group({bytes, place.length_bytes}, group, limit, arcs_max, starts,
                                       neighbours);
        !done) {
      return done;
    }
    bytes += place.length_bytes;
    if (shape_.has_degrees && starts.back() - arcs_before != arcs(group[0])) return Errno{EIO};
  }
  return {};
}

ListIndexBuilder::ListIndexBuilder(const ListIndexShape& shape)
    : shape_(shape),
      degrees_(shape.has_arc_starts && !shape.is_derived),
      lengths_(!shape.is_derived) {}

void ListIndexBuilder::skip_to(uint64_t vertex) {
  if (shape_.is_sparse) {
    bitmap_.resize(bitmap_words(vertex));
  } else {
    if (shape_.has_degrees) degrees_.append_zeros(vertex - vertex_count_);
    if (shape_.has_lengths) lengths_.append_zeros(vertex - vertex_count_);
  }
  vertex_count_ = vertex;
}

void ListIndexBuilder::append(uint32_t vertex, uint64_t degree, uint64_t length_bytes) {
  skip_to(vertex);
  if (shape_.is_sparse) bitmap_[vertex / 64] |= uint64_t{1} << vertex % 64;
  if (shape_.has_degrees && !shape_.has_groups) degrees_.append(degree);
  if (shape_.has_lengths && !shape_.has_groups) lengths_.append(length_bytes);
  ++vertex_count_;
  ++list_count_;
  arc_count_ += degree;
  if (!shape_.has_groups) lists_bytes_ += length_bytes;
}

void ListIndexBuilder::append_group(uint64_t length_bytes, uint64_t arcs) {
  if (shape_.has_degrees) degrees_.append(arcs);
  lengths_.append(length_bytes);
  lists_bytes_ += length_bytes;
}

void ListIndexBuilder::finish(uint64_t vertex_count) { skip_to(vertex_count); }

uint64_t ListIndexBuilder::memory_bytes() const {
  return bitmap_.capacity() * 8 + degrees_.memory_bytes() + lengths_.memory_bytes();
}

uint64_t ListIndexBuilder::size_bytes() const {
  uint64_t size = sizeof(ListIndexHead);
  if (shape_.is_sparse) {
    size += bitmap_words(vertex_count_) * 8 + (shape_.is_derived ? 0 : rank_bytes(vertex_count_));
  }
  if (shape_.has_degrees) size += degrees_.size_bytes();
  if (shape_.has_lengths) size += lengths_.size_bytes();
  return size;
}

Outcome<void> ListIndexBuilder::write_ranks(const ByteColumnBuilder::Write& write) const {
  std::vector<uint32_t> ranks(rank_bytes(vertex_count_) / 4);
  uint64_t rank = 0;
  for (size_t word = 0; word < bitmap_.size(); ++word) {
    if (word % (kIndexRankBits / 64) == 0) {
      ranks[word / (kIndexRankBits / 64)] = static_cast<uint32_t>(rank);
    }
    rank += static_cast<uint64_t>(__builtin_popcountll(bitmap_[word]));
  }
  return write(ranks.data(), ranks.size() * 4);
}

Outcome<void> ListIndexBuilder::write(const ByteColumnBuilder::Write& write) const {
  const ListIndexHead head{.vertex_count = vertex_count_,
                           .list_count = shape_.is_sparse ? list_count_ : vertex_count_,
                           .flags = flags_of(shape_),
                           .reserved = {},
                           .arc_count = arc_count_,
                           .lists_bytes = lists_bytes_};
  if (auto done = write(&head, sizeof head); !done) return done;
  if (shape_.is_sparse) {
    if (auto done = write(bitmap_.data(), bitmap_.size() * 8); !done) return done;
    if (!shape_.is_derived) {
      if (auto done = write_ranks(write); !done) return done;
    }
  }
  if (shape_.has_degrees) {
    if (auto done = degrees_.write(write); !done) return done;
  }
  return shape_.has_lengths ? lengths_.write(write) : Outcome<void>();
}

}  // namespace graphlane::graphfmt
