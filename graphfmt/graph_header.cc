#include "graphfmt/graph_header.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "iomgr/base/crc32c_long.h"

namespace graphlane::graphfmt {
namespace {

constexpr char kHeaderMagic[8] = {'G', 'r', 'a', 'p', 'h', 'l', 'n', '\n'};
constexpr size_t kHeaderFilesAt = 80;
constexpr size_t kHeaderFileBytes = 32;
constexpr size_t kHeaderNameBytes = 16;
constexpr size_t kHeaderUnusedAt = kHeaderFilesAt + GraphHeader::kFilesMax * kHeaderFileBytes;
constexpr size_t kHeaderChecksumAt = kGraphHeaderBytes - sizeof(uint32_t);
static_assert(kHeaderUnusedAt <= kHeaderChecksumAt);

enum HeaderField : size_t {
  kVersionAt = 8,
  kKindAt = 12,
  kDirectedAt = 16,
  kCodecAt = 20,
  kWeightAt = 24,
  kPartitionsAt = 28,
  kPieceBytesAt = 32,
  kFileCountAt = 36,
  kVertexCountAt = 40,
  kArcCountAt = 48,
  kEdgeCountAt = 56,
  kWeightsBytesAt = 64,
  kReservedAt = 72,  // to kHeaderFilesAt
};

template <class T>
T header_field(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool is_zero_header(std::string_view bytes, size_t from, size_t to) {
  return std::all_of(bytes.begin() + static_cast<ptrdiff_t>(from),
                     bytes.begin() + static_cast<ptrdiff_t>(to), [](char c) { return c == 0; });
}

Outcome<GraphHeader::File> parse_header_file(std::string_view bytes, size_t at,
                                             const std::string& path) {
  const std::string_view field = bytes.substr(at, kHeaderNameBytes);
  const size_t length = std::min(field.find('\0'), field.size());
  GraphHeader::File file{.name = std::string(field.substr(0, length)),
                         .size_bytes = header_field<uint64_t>(bytes, at + kHeaderNameBytes),
                         .checksum = header_field<uint32_t>(bytes, at + kHeaderNameBytes + 8)};
  if (length == 0 || length == field.size() || file.name.find('/') != std::string::npos ||
      !is_zero_header(bytes, at + length, at + kHeaderNameBytes) ||
      header_field<uint32_t>(bytes, at + 28) != 0) {
    return make_error(EIO, "{}: byte {}: not the name of a file", path, at);
  }
  return file;
}

Outcome<void> check_header(const GraphHeader& h, uint32_t directed, const std::string& path) {
  const auto bad = [&](size_t at, std::string_view what, uint64_t value) -> Outcome<void> {
    return make_error(EIO, "{}: byte {}: {} {}", path, at, what, value);
  };
  if (directed > 1) return bad(kDirectedAt, "directed:", directed);
  const uint32_t codec = static_cast<uint32_t>(h.codec);
  if (codec > static_cast<uint32_t>(CodecKind::kReference)) {
    return make_error(ENOTSUP, "{}: byte {}: codec {} is not known", path, size_t{kCodecAt}, codec);
  }
  if (h.kind != GraphKind::kDual && ListCodec::of(h.codec).group_vertices() > 1) {
    return make_error(ENOTSUP,
                      "{}: byte {}: the codec {}, which only a graph of the format dual can have",
                      path, size_t{kCodecAt}, name_of(h.codec));
  }
  const uint32_t weight = static_cast<uint32_t>(h.weight);
  if (weight > static_cast<uint32_t>(WeightKind::kInt64)) {
    return make_error(ENOTSUP, "{}: byte {}: weights of type {} are not known", path,
                      size_t{kWeightAt}, weight);
  }
  if (h.version > format_version(h.weight != WeightKind::kNone)) {
    return bad(kVersionAt, "without weights, but of version", h.version);
  }
  if (!h.encodes_weights() && h.weights_bytes != 0) {
    return bad(kWeightsBytesAt, "bytes of encoded weights:", h.weights_bytes);
  }
  if (!h.encodes_weights() && h.weight != WeightKind::kNone && h.codec == CodecKind::kReference) {
    return make_error(
        ENOTSUP,
        "{}: byte {}: weights of format version 1 with the codec reference, which are not read "
        "any more: `graphlane convert -w --to dual --codec reference EDGES GRAPH` makes it again",
        path, size_t{kVersionAt});
  }
  if (h.checksum_piece_bytes < 512 || h.checksum_piece_bytes > (1u << 30)) {
    return bad(kPieceBytesAt, "bytes a checksum:", h.checksum_piece_bytes);
  }
  if (h.vertex_count > kListVertexCountMax) {
    return bad(kVertexCountAt, "vertex count", h.vertex_count);
  }
  if (h.edge_count > h.arc_count) return bad(kEdgeCountAt, "edge count", h.edge_count);
  if (h.is_directed && h.edge_count != h.arc_count) {
    return bad(kEdgeCountAt, "edge count", h.edge_count);
  }
  return {};
}

}  // namespace

std::string_view name_of(GraphKind kind) {
  switch (kind) {
    case GraphKind::kLists: return "lists";
    case GraphKind::kDual: return "dual";
    case GraphKind::kPages: return "pages";
  }
  return "?";
}

std::string_view name_of(WeightKind kind) {
  switch (kind) {
    case WeightKind::kNone: return "none";
    case WeightKind::kFloat32: return "float32";
    case WeightKind::kFloat64: return "float64";
    case WeightKind::kInt64: return "int64";
  }
  return "?";
}

const GraphHeader::File* GraphHeader::find(std::string_view name) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const File& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::array<uint8_t, kGraphHeaderBytes> encode_header(const GraphHeader& header) {
  assert(header.files.size() <= GraphHeader::kFilesMax);
  std::array<uint8_t, kGraphHeaderBytes> bytes{};
  const auto put = [&](size_t at, auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  std::memcpy(bytes.data(), kHeaderMagic, sizeof kHeaderMagic);
  put(kVersionAt, header.version);
  put(kKindAt, static_cast<uint32_t>(header.kind));
  put(kDirectedAt, uint32_t{header.is_directed});
  put(kCodecAt, static_cast<uint32_t>(header.codec));
  put(kWeightAt, static_cast<uint32_t>(header.weight));
  put(kPartitionsAt, header.partitions);
  put(kPieceBytesAt, header.checksum_piece_bytes);
  put(kFileCountAt, static_cast<uint32_t>(header.files.size()));
  put(kVertexCountAt, header.vertex_count);
  put(kArcCountAt, header.arc_count);
  put(kEdgeCountAt, header.edge_count);
  put(kWeightsBytesAt, header.weights_bytes);
  for (size_t f = 0; f < header.files.size(); ++f) {
    const GraphHeader::File& file = header.files[f];
    assert(file.name.size() < kHeaderNameBytes);
    const size_t at = kHeaderFilesAt + f * kHeaderFileBytes;
    std::memcpy(bytes.data() + at, file.name.data(), file.name.size());
    put(at + kHeaderNameBytes, file.size_bytes);
    put(at + kHeaderNameBytes + 8, file.checksum);
  }
  put(kHeaderChecksumAt, crc32c_extend(0, bytes.data(), kHeaderChecksumAt));
  return bytes;
}

bool has_graph_magic(std::string_view bytes) {
  return bytes.starts_with(std::string_view(kHeaderMagic, sizeof kHeaderMagic));
}

Outcome<GraphHeader> parse_header(std::string_view bytes, const std::string& path) {
  if (!has_graph_magic(bytes)) {
    return make_error(EINVAL, "{}: byte 0: not the header of a graph", path);
  }
  if (bytes.size() != kGraphHeaderBytes) {
    return make_error(EIO, "{}: byte {}: {} bytes, expected {}", path,
                      std::min(bytes.size(), kGraphHeaderBytes), bytes.size(), kGraphHeaderBytes);
  }
  if (header_field<uint32_t>(bytes, kHeaderChecksumAt) !=
      crc32c_extend(0, bytes.data(), kHeaderChecksumAt)) {
    return make_error(EIO, "{}: byte {}: the header's checksum is wrong: it is damaged", path,
                      kHeaderChecksumAt);
  }
  const uint32_t version = header_field<uint32_t>(bytes, kVersionAt);
  if (version < 1 || version > kGraphFormatVersionMax) {
    return make_error(ENOTSUP, "{}: byte {}: format version {}, expected 1 to {}", path,
                      size_t{kVersionAt}, version, kGraphFormatVersionMax);
  }
  const uint32_t kind = header_field<uint32_t>(bytes, kKindAt);
  if (kind < 1 || kind > 3) {
    return make_error(ENOTSUP, "{}: byte {}: a graph of kind {}, which is not known", path,
                      size_t{kKindAt}, kind);
  }
  GraphHeader header{.kind = static_cast<GraphKind>(kind),
                     .is_directed = header_field<uint32_t>(bytes, kDirectedAt) == 1,
                     .codec = static_cast<CodecKind>(header_field<uint32_t>(bytes, kCodecAt)),
                     .weight = static_cast<WeightKind>(header_field<uint32_t>(bytes, kWeightAt)),
                     .version = version,
                     .partitions = header_field<uint32_t>(bytes, kPartitionsAt),
                     .checksum_piece_bytes = header_field<uint32_t>(bytes, kPieceBytesAt),
                     .vertex_count = header_field<uint64_t>(bytes, kVertexCountAt),
                     .arc_count = header_field<uint64_t>(bytes, kArcCountAt),
                     .edge_count = header_field<uint64_t>(bytes, kEdgeCountAt),
                     .weights_bytes = header_field<uint64_t>(bytes, kWeightsBytesAt),
                     .files = {}};
  if (Outcome<void> sound = check_header(header, header_field<uint32_t>(bytes, kDirectedAt), path);
      !sound) {
    return sound.error();
  }
  const uint32_t file_count = header_field<uint32_t>(bytes, kFileCountAt);
  if (file_count > GraphHeader::kFilesMax) {
    return make_error(EIO, "{}: byte {}: {} files", path, size_t{kFileCountAt}, file_count);
  }
  for (uint32_t f = 0; f < file_count; ++f) {
    Outcome<GraphHeader::File> file =
        parse_header_file(bytes, kHeaderFilesAt + f * kHeaderFileBytes, path);
    if (!file) return file.error();
    header.files.push_back(std::move(*file));
  }
  const size_t used = kHeaderFilesAt + file_count * kHeaderFileBytes;
  if (!is_zero_header(bytes, kReservedAt, kHeaderFilesAt) ||
      !is_zero_header(bytes, used, kHeaderChecksumAt)) {
    return make_error(EIO, "{}: byte {}: what is to be zero is not", path, size_t{kReservedAt});
  }
  return header;
}

}  // namespace graphlane::graphfmt
