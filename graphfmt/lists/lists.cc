#include "graphfmt/lists/lists.h"

#include "graphfmt/stored_files.h"
#include "iomgr/base/crc32c_long.h"

namespace graphlane::graphfmt {
namespace {

std::string_view prefix_of(Direction direction) {
  return direction == Direction::kOut ? "out" : "in";
}

}  // namespace

std::string list_file_name(Direction direction, ListPart part) {
  return fmt::format("{}.{}", prefix_of(direction), part == ListPart::kLists ? "lists" : "weights");
}

std::string list_index_name(Direction direction) {
  return fmt::format("{}.index", prefix_of(direction));
}

bool is_stored_graph(const std::string& path) {
  const auto directory = GraphDirectory::open(path);
  if (!directory || !directory->has(kGraphHeaderFile)) return false;
  const auto bytes = directory->read(kGraphHeaderFile, kGraphHeaderBytes);
  return bytes && has_graph_magic(*bytes);
}

Outcome<std::unique_ptr<Lists>> Lists::open(const std::string& path) {
  auto directory = GraphDirectory::open(path);
  if (!directory) return directory.error();
  std::unique_ptr<Lists> lists(new Lists(std::move(*directory)));
  auto header = read_header_of(lists->directory_, GraphKind::kLists);
  if (!header) return header.error();
  lists->header_ = std::move(*header);
  const GraphHeader& h = lists->header_;
  const size_t file_count = (h.is_directed ? 2u : 1u) * (lists->is_weighted() ? 3u : 2u);
  if (h.files.size() != file_count || h.partitions != 0) {
    return make_error(EIO, "{}: byte 36: {} files, expected {}",
                      lists->directory_.path_of(kGraphHeaderFile), h.files.size(), file_count);
  }
  if (auto sound = check_weights_bytes(lists->directory_, h); !sound) return sound.error();
  if (auto opened = lists->open_side(Direction::kOut); !opened) return opened.error();
  if (h.is_directed) {
    if (auto opened = lists->open_side(Direction::kIn); !opened) return opened.error();
  }
  return lists;
}

Outcome<void> Lists::open_side(Direction direction) {
  Side& s = sides_[direction == Direction::kOut ? 0 : 1];
  const std::string name = list_index_name(direction);
  const std::string path = directory_.path_of(name);
  auto content = read_pinned_file(directory_, header_, name);
  if (!content) return content.error();
  s.content = std::move(*content);
  std::span<const uint8_t> rest(s.content.as<uint8_t>(), s.content.size());
  ListIndexShape shape = list_index_shape(header_.codec, is_weighted());
  shape.is_sparse = is_sparse_index(rest);
  auto index = ListIndex::parse(rest, shape, path);
  if (!index) return index.error();
  s.index = std::move(*index);
  if (s.index.vertex_count() != header_.vertex_count || s.index.arc_count() != header_.arc_count) {
    return make_error(EIO, "{}: byte 0: {} vertices and {} arcs, but the header has {} and {}",
                      path, s.index.vertex_count(), s.index.arc_count(), header_.vertex_count,
                      header_.arc_count);
  }
  if (auto done = take_checksums(direction, ListPart::kLists, rest); !done) return done;
  if (is_weighted()) {
    auto weights = WeightTable::take(rest, header_, path, s.content.size());
    if (!weights) return weights.error();
    s.weights = std::move(*weights);
    if (auto done = take_checksums(direction, ListPart::kWeights, rest); !done) return done;
  }
  if (rest.empty()) return {};
  return make_error(EIO, "{}: byte {}: {} bytes too many", path, s.content.size() - rest.size(),
                    rest.size());
}

Outcome<void> Lists::take_checksums(Direction direction, ListPart part,
                                    std::span<const uint8_t>& rest) {
  Side& s = sides_[direction == Direction::kOut ? 0 : 1];
  const std::string name = list_file_name(direction, part);
  const std::string index_path = directory_.path_of(list_index_name(direction));
  const uint64_t expected = part == ListPart::kLists ? s.index.lists_bytes() : s.weights.bytes();
  const auto checksums = take_piece_checksums(directory_, header_, name, expected,
                                              {index_path, s.content.size(), "index", rest});
  if (!checksums) return checksums.error();
  s.checksums[static_cast<size_t>(part)] = *checksums;
  return {};
}

uint64_t Lists::file_bytes(Direction direction, ListPart part) const {
  const GraphHeader::File* const file = header_.find(file_name(direction, part));
  return file == nullptr ? 0 : file->size_bytes;
}

bool Lists::is_sound_piece(Direction direction, ListPart part, uint64_t piece,
                           std::span<const uint8_t> bytes) const {
  const std::span<const uint32_t> checksums = side(direction).checksums[static_cast<size_t>(part)];
  return piece < checksums.size() &&
         crc32c_extend(0, bytes.data(), bytes.size()) == checksums[piece];
}

Outcome<void> Lists::check_piece(Direction direction, ListPart part, uint64_t piece,
                                 std::span<const uint8_t> bytes) const {
  if (is_sound_piece(direction, part, piece, bytes)) return {};
  return make_error(EIO, "{}: byte {}: the checksum of these {} bytes is wrong: they are damaged",
                    directory_.path_of(file_name(direction, part)), piece * piece_bytes(),
                    bytes.size());
}

}  // namespace graphlane::graphfmt
