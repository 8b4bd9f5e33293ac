// GraphHeader: the file `graph` of a stored graph. It has the graph's kind, its numbers of vertices
// and arcs, the encoding of its lists, and size and checksum of each other file. FORMAT.md has it
// byte by byte.
//
// A header is read whole or not at all: magic, version, checksum and every field are checked, so
// that what reads the other files can rely on it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphfmt/codec/codec.h"
#include "graphfmt/edge.h"
#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

inline constexpr char kGraphHeaderFile[] = "graph";
inline constexpr size_t kGraphHeaderBytes = 512;
// 1: weights, if any, are as in memory. 2: they are encoded (weight_codec.h).
inline constexpr uint32_t kGraphFormatVersionMax = 2;
constexpr uint32_t format_version(bool is_weighted) { return is_weighted ? 2 : 1; }
// Pieces of list and weight files that have a checksum each.
inline constexpr uint32_t kChecksumPieceBytes = 4096;

enum class GraphKind : uint32_t { kLists = 1, kDual = 2, kPages = 3 };
enum class WeightKind : uint32_t { kNone = 0, kFloat32 = 1, kFloat64 = 2, kInt64 = 3 };

std::string_view name_of(GraphKind kind);
std::string_view name_of(WeightKind kind);
constexpr WeightKind weight_kind(bool weighted, WeightType type) {
  if (!weighted) return WeightKind::kNone;
  return type == WeightType::kFloat32   ? WeightKind::kFloat32
         : type == WeightType::kFloat64 ? WeightKind::kFloat64
                                        : WeightKind::kInt64;
}
// The size of an arc's weight.
constexpr size_t weight_bytes(WeightKind kind) {
  return kind == WeightKind::kNone ? 0 : kind == WeightKind::kFloat32 ? 4 : 8;
}

struct GraphHeader {
  // A file beside the header. `checksum` is a CRC32C: of an index, of all its bytes; of lists and
  // weights, of their pieces' checksums (uint32 each), which stand in the index.
  struct File {
    std::string name;  // at most 15 bytes
    uint64_t size_bytes = 0;
    uint32_t checksum = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  static constexpr size_t kFilesMax = 12;

  GraphKind kind = GraphKind::kLists;
  // In an undirected graph, each edge stands in both ends' lists; a self-loop stands once.
  bool is_directed = true;
  CodecKind codec = CodecKind::kRaw;
  WeightKind weight = WeightKind::kNone;
  uint32_t version = 1;
  uint32_t partitions = 0;  // P of `dual`, else 0
  uint32_t checksum_piece_bytes = kChecksumPieceBytes;
  uint64_t vertex_count = 0;
  uint64_t arc_count = 0;      // in one direction's lists
  uint64_t edge_count = 0;     // directed: arc_count; undirected: each edge once
  uint64_t weights_bytes = 0;  // of version 2: the encoded weights of all directions
  std::vector<File> files;

  bool encodes_weights() const { return version >= 2; }
  // nullptr: it has no such file.
  const File* find(std::string_view name) const;
  friend bool operator==(const GraphHeader&, const GraphHeader&) = default;
};

std::array<uint8_t, kGraphHeaderBytes> encode_header(const GraphHeader& header);

// Whether these are the first bytes of a header, sound or not.
bool has_graph_magic(std::string_view bytes);

// Errors call the file `path`, and name the byte. EIO: damaged; ENOTSUP: another version or kind;
// EINVAL: not a header at all.
Outcome<GraphHeader> parse_header(std::string_view bytes, const std::string& path);

}  // namespace graphlane::graphfmt
