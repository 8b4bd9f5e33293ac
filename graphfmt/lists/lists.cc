#include "graphfmt/lists/lists.h"

#include <algorithm>

#include "iomgr/base/crc32c_long.h"
#include "iomgr/stripe.h"

namespace graphlane {
namespace {

uint64_t piece_count(uint64_t size_bytes, uint64_t piece_bytes) {
  return (size_bytes + piece_bytes - 1) / piece_bytes;
}

std::string_view prefix_of(Direction direction) { return direction == Direction::kOut ? "out" : "in"; }

// The header's entry of a file that it names; EIO unless the file has the size in it.
Outcome<GraphHeader::File> find_sound_file(const Lists& lists, const std::string& name) {
  const GraphHeader::File* const file = lists.header().find(name);
  const std::string path = lists.directory().path_of(name);
  if (file == nullptr) {
    return make_error(EIO, "{}: names no file {}", lists.directory().path_of(kGraphHeaderFile), name);
  }
  const auto there = lists.directory().look(name);
  if (!there) return there.error();
  if (there->size_bytes != file->size_bytes) {
    return make_error(EIO, "{}: byte {}: {} bytes, expected {}", path, std::min(there->size_bytes, file->size_bytes),
                      there->size_bytes, file->size_bytes);
  }
  return *file;
}

}  // namespace

std::string list_file_name(Direction direction, ListPart part) {
  return fmt::format("{}.{}", prefix_of(direction), part == ListPart::kLists ? "lists" : "weights");
}

std::string list_index_name(Direction direction) { return fmt::format("{}.index", prefix_of(direction)); }

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
  const std::string header_path = lists->directory_.path_of(kGraphHeaderFile);
  if (!lists->directory_.has(kGraphHeaderFile)) {
    return make_error(EINVAL, "{}: not a stored graph: it has no file `{}`", path, kGraphHeaderFile);
  }
  const auto bytes = lists->directory_.read(kGraphHeaderFile, kGraphHeaderBytes);
  if (!bytes) return bytes.error();
  auto header = parse_header(*bytes, header_path);
  if (!header) return header.error();
  if (header->kind != GraphKind::kLists) {
    return make_error(ENOTSUP, "{}: a graph of kind {}, expected lists", path, name_of(header->kind));
  }
  lists->header_ = std::move(*header);
  const GraphHeader& h = lists->header_;
  const size_t file_count = (h.is_directed ? 2u : 1u) * (lists->is_weighted() ? 3u : 2u);
  if (h.files.size() != file_count || h.partitions != 0) {
    return make_error(EIO, "{}: byte 36: {} files, expected {}", header_path, h.files.size(), file_count);
  }
  if (auto opened = lists->open_side(Direction::kOut); !opened) return opened.error();
  if (h.is_directed) {
    if (auto opened = lists->open_side(Direction::kIn); !opened) return opened.error();
  }
  return lists;
}

Outcome<void> Lists::open_side(Direction direction) {
  Side& s = sides_[direction == Direction::kOut ? 0 : 1];
  const std::string name = list_index_name(direction);
  const auto file = find_sound_file(*this, name);
  if (!file) return file.error();
  const std::string path = directory_.path_of(name);
  const auto opened = directory_.open_file(name);
  if (!opened) return opened.error();
  auto content = Buffer::allocate(file->size_bytes);
  if (!content) return make_error(ENOMEM, "{}: no memory for its {} bytes", path, file->size_bytes);
  s.content = std::move(*content);
  if (auto done = opened->read({0, file->size_bytes}, s.content.data()); !done) return done;
  if (crc32c_extend(0, s.content.data(), s.content.size()) != file->checksum) {
    return make_error(EIO, "{}: byte 0: its checksum is not the header's: it is damaged, or another graph's", path);
  }
  std::span<const uint8_t> rest(s.content.as<uint8_t>(), s.content.size());
  ListIndexShape shape = list_index_shape(header_.codec, is_weighted());
  shape.is_sparse = is_sparse_index(rest);
  auto index = ListIndex::parse(rest, shape, path);
  if (!index) return index.error();
  s.index = std::move(*index);
  if (s.index.vertex_count() != header_.vertex_count || s.index.arc_count() != header_.arc_count) {
    return make_error(EIO, "{}: byte 0: {} vertices and {} arcs, but the header has {} and {}", path,
                      s.index.vertex_count(), s.index.arc_count(), header_.vertex_count, header_.arc_count);
  }
  if (auto done = take_checksums(direction, ListPart::kLists, rest); !done) return done;
  if (is_weighted()) {
    if (auto done = take_checksums(direction, ListPart::kWeights, rest); !done) return done;
  }
  if (rest.empty()) return {};
  return make_error(EIO, "{}: byte {}: {} bytes too many", path, s.content.size() - rest.size(), rest.size());
}

Outcome<void> Lists::take_checksums(Direction direction, ListPart part, std::span<const uint8_t>& rest) {
  Side& s = sides_[direction == Direction::kOut ? 0 : 1];
  const std::string name = list_file_name(direction, part);
  const std::string index_path = directory_.path_of(list_index_name(direction));
  const auto file = find_sound_file(*this, name);
  if (!file) return file.error();
  const uint64_t expected =
      part == ListPart::kLists ? s.index.lists_bytes() : s.index.arc_count() * weight_bytes(header_.weight);
  if (file->size_bytes != expected) {
    return make_error(EIO, "{}: byte {}: {} bytes, but by its index {}", directory_.path_of(name),
                      std::min(file->size_bytes, expected), file->size_bytes, expected);
  }
  const uint64_t count = piece_count(expected, piece_bytes());
  const uint64_t size = round_up(count * sizeof(uint32_t), 8);
  const size_t at = s.content.size() - rest.size();
  if (rest.size() < size) {
    return make_error(EIO, "{}: byte {}: ends in the checksums of {}", index_path, s.content.size(), name);
  }
  s.checksums[static_cast<size_t>(part)] = {reinterpret_cast<const uint32_t*>(rest.data()), count};
  if (crc32c_extend(0, rest.data(), count * sizeof(uint32_t)) != file->checksum) {
    return make_error(EIO, "{}: byte {}: the checksums of {} are not the header's", index_path, at, name);
  }
  rest = rest.subspan(size);
  return {};
}

uint64_t Lists::file_bytes(Direction direction, ListPart part) const {
  const GraphHeader::File* const file = header_.find(file_name(direction, part));
  return file == nullptr ? 0 : file->size_bytes;
}

bool Lists::is_sound_piece(Direction direction, ListPart part, uint64_t piece,
                           std::span<const uint8_t> bytes) const {
  const std::span<const uint32_t> checksums = side(direction).checksums[static_cast<size_t>(part)];
  return piece < checksums.size() && crc32c_extend(0, bytes.data(), bytes.size()) == checksums[piece];
}

Outcome<void> Lists::check_piece(Direction direction, ListPart part, uint64_t piece,
                                 std::span<const uint8_t> bytes) const {
  if (is_sound_piece(direction, part, piece, bytes)) return {};
  return make_error(EIO, "{}: byte {}: the checksum of these {} bytes is wrong: they are damaged",
                    directory_.path_of(file_name(direction, part)), piece * piece_bytes(), bytes.size());
}

}  // namespace graphlane
