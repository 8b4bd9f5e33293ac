#include "graphfmt/dual/dual.h"

#include <cstring>

#include "graphfmt/stored_files.h"
#include "iomgr/base/crc32c_long.h"

namespace graphlane::graphfmt {
namespace {

std::string_view dual_prefix(DualSide side) { return side == DualSide::kOut ? "out" : "in"; }

}  // namespace

std::string dual_file_name(DualSide side, DualPart part) {
  return fmt::format("{}.{}", dual_prefix(side), part == DualPart::kBlocks ? "blocks" : "weights");
}

Outcome<std::unique_ptr<Dual>> Dual::open(const std::string& path) {
  auto directory = GraphDirectory::open(path);
  if (!directory) return directory.error();
  std::unique_ptr<Dual> dual(new Dual(std::move(*directory)));
  if (auto read = dual->read_header(); !read) return read.error();
  if (auto read = dual->read_table(); !read) return read.error();
  return dual;
}

Outcome<void> Dual::read_header() {
  const std::string path = directory_.path_of(kGraphHeaderFile);
  auto header = read_header_of(directory_, GraphKind::kDual);
  if (!header) return header.error();
  header_ = std::move(*header);
  if (header_.partitions < 1 || header_.partitions > kDualPartitionsMax) {
    return make_error(EIO, "{}: byte 28: {} intervals, expected 1 to {}", path, header_.partitions,
                      kDualPartitionsMax);
  }
  const size_t file_count = 2 + (header_.is_directed ? 2u : 1u) * (is_weighted() ? 2u : 1u);
  if (header_.files.size() != file_count) {
    return make_error(EIO, "{}: byte 36: {} files, expected {}", path, header_.files.size(),
                      file_count);
  }
  if (auto sound = check_weights_bytes(directory_, header_); !sound) return sound;
  geometry_ = DualGeometry(header_.vertex_count, header_.partitions);
  return {};
}

Outcome<void> Dual::read_table() {
  const std::string path = directory_.path_of(kDualTableFile);
  auto content = read_pinned_file(directory_, header_, kDualTableFile);
  if (!content) return content.error();
  table_ = std::move(*content);
  std::span<const uint8_t> rest(table_.as<uint8_t>(), table_.size());
  if (auto taken = take_side(DualSide::kOut, rest); !taken) return taken;
  if (header_.is_directed) {
    if (auto taken = take_side(DualSide::kIn, rest); !taken) return taken;
  }
  if (rest.empty()) return {};
  return make_error(EIO, "{}: byte {}: {} bytes too many", path, table_.size() - rest.size(),
                    rest.size());
}

Outcome<void> Dual::take_side(DualSide which, std::span<const uint8_t>& rest) {
  Side& s = sides_[which == DualSide::kOut ? 0 : 1];
  const std::string path = directory_.path_of(kDualTableFile);
  const size_t at = table_.size() - rest.size();
  const uint64_t count = geometry_.block_count();
  if (rest.size() < count * sizeof(DualBlockSizes)) {
    return make_error(EIO, "{}: byte {}: ends in the sizes of blocks", path, table_.size());
  }
  s.blocks.reserve(count);
  // Sums of sizes below this cannot wrap.
  constexpr uint64_t kSizeMax = uint64_t{1} << 60;
  uint64_t offset = 0, arcs = 0;
  for (uint64_t b = 0; b < count; ++b) {
    DualBlockSizes sizes;
    std::memcpy(&sizes, rest.data() + b * sizeof sizes, sizeof sizes);
    const bool is_empty = sizes.arc_count == 0;
    if (sizes.index_bytes % 8 != 0 || sizes.index_bytes > kSizeMax ||
        sizes.lists_bytes > kSizeMax || sizes.arc_count > header_.arc_count ||
        is_empty != (sizes.index_bytes == 0) || is_empty != (sizes.lists_bytes == 0)) {
      return make_error(EIO, "{}: byte {}: not the sizes of a block", path, at + b * sizeof sizes);
    }
    s.blocks.push_back({.index = {offset, sizes.index_bytes},
                        .lists = {offset + sizes.index_bytes, sizes.lists_bytes},
                        .arc_count = sizes.arc_count,
                        .first_arc = arcs});
    offset += sizes.index_bytes + round_up(sizes.lists_bytes, 8);
    arcs += sizes.arc_count;
    s.index_bytes += sizes.index_bytes;
    s.lists_bytes += sizes.lists_bytes;
    if (offset > kSizeMax) {
      return make_error(EIO, "{}: byte {}: not the sizes of a block", path, at + b * sizeof sizes);
    }
  }
  rest = rest.subspan(count * sizeof(DualBlockSizes));
  if (arcs != header_.arc_count) {
    return make_error(EIO, "{}: byte {}: blocks of {} arcs, but the header has {}", path, at, arcs,
                      header_.arc_count);
  }
  if (auto taken = take_checksums(which, DualPart::kBlocks, offset, rest); !taken) return taken;
  if (!is_weighted()) return {};
  auto weights = WeightTable::take(rest, header_, path, table_.size());
  if (!weights) return weights.error();
  s.weights = std::move(*weights);
  return take_checksums(which, DualPart::kWeights, s.weights.bytes(), rest);
}

Outcome<void> Dual::take_checksums(DualSide which, DualPart part, uint64_t expected,
                                   std::span<const uint8_t>& rest) {
  const std::string path = directory_.path_of(kDualTableFile);
  const auto checksums = take_piece_checksums(directory_, header_, dual_file_name(which, part),
                                              expected, {path, table_.size(), "blocks", rest});
  if (!checksums) return checksums.error();
  sides_[which == DualSide::kOut ? 0 : 1].checksums[static_cast<size_t>(part)] = *checksums;
  return {};
}

uint64_t Dual::file_bytes(DualSide side, DualPart part) const {
  const GraphHeader::File* const file = header_.find(file_name(side, part));
  return file == nullptr ? 0 : file->size_bytes;
}

Outcome<ListIndex> Dual::parse_index(DualSide side, uint32_t own, uint32_t other,
                                     std::span<const uint8_t> bytes) const {
  const DualBlock& b = block(side, own, other);
  const std::string path = directory_.path_of(file_name(side, DualPart::kBlocks));
  auto index = ListIndex::parse(bytes, index_shape(), path, b.index.offset);
  if (!index) return index.error();
  if (!bytes.empty() || index->vertex_count() != geometry_.size(own) ||
      index->lists_bytes() != b.lists.length_bytes || index->arc_count() != b.arc_count) {
    return make_error(EIO, "{}: byte {}: not the index of block {},{}", path, b.index.offset, own,
                      other);
  }
  return index;
}

Outcome<DualDegrees> Dual::read_degrees() const {
  const std::string path = directory_.path_of(kDualDegreesFile);
  auto content = read_pinned_file(directory_, header_, kDualDegreesFile);
  if (!content) return content.error();
  DualDegrees degrees;
  degrees.bytes_ = std::move(*content);
  std::span<const uint8_t> rest(degrees.bytes_.as<uint8_t>(), degrees.bytes_.size());
  auto column = ByteColumn::parse(rest, header_.vertex_count, ColumnStarts::kNone, path, 0);
  if (!column) return column.error();
  if (!rest.empty() || column->total() != header_.arc_count) {
    return make_error(EIO, "{}: byte 0: not the degrees of {} arcs", path, header_.arc_count);
  }
  degrees.column_ = std::move(*column);
  return degrees;
}

bool Dual::is_sound_piece(DualSide which, DualPart part, uint64_t piece,
                          std::span<const uint8_t> bytes) const {
  const std::span<const uint32_t> checksums = side(which).checksums[static_cast<size_t>(part)];
  return piece < checksums.size() &&
         crc32c_extend(0, bytes.data(), bytes.size()) == checksums[piece];
}

}  // namespace graphlane::graphfmt
