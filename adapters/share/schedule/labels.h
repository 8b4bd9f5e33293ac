// Labels: the source vertices of each chunk, and their edge counts: GraphM's algorithm 1.
//
//   partition   | s s t s | t t u s | u |       sources of its edges, chunks of 4
//   Set_c         s:3 t:1   s:1 t:2   u:1       (vertex, N+) of each chunk
//                           u:1
//
// Edges have a fixed size, so the algorithm's `edge_num × S_G / |E| ≥ S_c` holds every S_c bytes:
// chunk k of a partition begins at k × S_c. Only the tables take room: 8 bytes for each source
// vertex of each chunk, by rising vertex.
//
// In bytes (in a file or shared memory), little-endian; label_file.h says where:
//
//   offset                   size
//        0                     72    LabelHeader
//       72       8 × (partitions+1)  the first chunk of each partition, and the end
//        …           8 × (chunks+1)  the first entry of each chunk, and the end
//        …              8 × entries  uint32 vertex, uint32 N+
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "adapters/share/schedule/units.h"
#include "adapters/share/wire/layout.h"
#include "iomgr/base/error.h"

namespace graphlane::share {

struct ChunkEntry {
  uint32_t vertex = 0;
  uint32_t edge_count = 0;  // N+: edges of this chunk that begin at the vertex
  friend bool operator==(const ChunkEntry&, const ChunkEntry&) = default;
};
static_assert(sizeof(ChunkEntry) == 8);

// Appends the chunk's entries to `table`, by rising vertex.
void label_chunk(std::span<const char> edges, RecordFormat record, std::vector<ChunkEntry>& table);

struct LabelHeader {
  static constexpr uint32_t kMagic = 0x31484347;  // "GCH1"
  static constexpr uint32_t kVersion = 1;
  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  uint64_t graph_hash = 0;  // graph_hash() below
  uint64_t chunk_bytes = 0;
  uint64_t chunk_count = 0;
  uint64_t entry_count = 0;
  uint32_t partition_count = 0;
  uint32_t record_bytes = 0;
  uint32_t reserved[3] = {};
  uint32_t payload_crc = 0;  // CRC-32C of all that follows the header
  uint32_t padding = 0;
  uint32_t header_crc = 0;  // of the header before this field
};
static_assert(sizeof(LabelHeader) == 72);

// Changes with the layout, and with the size or modification time of a file.
uint64_t graph_hash(const Layout& layout, std::span<const FileIdentity> files);

// The header of labels that begin with `bytes` and have `size_bytes` in all. Bounds `size_bytes` by
// what the graph's edges allow. EINVAL: as of Labels::parse().
Outcome<LabelHeader> parse_label_header(std::span<const char> bytes, uint64_t size_bytes,
                                        uint64_t graph_hash, uint64_t chunk_bytes,
                                        std::span<const uint64_t> partition_bytes);

// A bitmap of vertices, bit v of word v / 64.
using VertexBits = std::span<const uint64_t>;

// The labels of a whole graph, in borrowed memory.
class Labels {
 public:
  Labels() = default;

  // EINVAL: damaged, of another graph, or for another chunk size; the text says where.
  static Outcome<Labels> parse(std::span<const char> bytes, uint64_t graph_hash,
                               uint64_t chunk_bytes, std::span<const uint64_t> partition_bytes);

  uint64_t chunk_bytes() const { return header_.chunk_bytes; }
  uint32_t chunk_count(uint32_t partition) const {
    return static_cast<uint32_t>(first_chunk_[partition + 1] - first_chunk_[partition]);
  }
  std::span<const ChunkEntry> table(uint32_t partition, uint32_t chunk) const {
    const uint64_t k = first_chunk_[partition] + chunk;
    return entries_.subspan(first_entry_[k], first_entry_[k + 1] - first_entry_[k]);
  }
  explicit operator bool() const { return !first_chunk_.empty(); }

 private:
  LabelHeader header_;
  std::span<const uint64_t> first_chunk_;
  std::span<const uint64_t> first_entry_;
  std::span<const ChunkEntry> entries_;
};

// The sum over v in V_k ∩ A_j of N+(v): formulas 2 and 3.
uint64_t count_active_edges(std::span<const ChunkEntry> table, VertexBits active);
bool any_active_edge(std::span<const ChunkEntry> table, VertexBits active);

// The tables of the chunks of a partition (Set_c^i) or of a unit.
struct ChunkTables {
  std::vector<uint64_t> chunk_ends;  // in `entries`
  std::vector<ChunkEntry> entries;
};
ChunkTables label_chunks(std::span<const char> bytes, RecordFormat record, uint64_t chunk_bytes);

// Builds labels from units, in any order, each once.
class LabelBuilder {
 public:
  LabelBuilder(Units units, RecordFormat record, uint64_t chunk_bytes)
      : units_(std::move(units)),
        record_(record),
        chunk_bytes_(chunk_bytes),
        tables_(units_.count()) {}

  void add(uint32_t unit, ChunkTables tables);
  bool complete() const { return labelled_count_ == tables_.size(); }
  std::string to_bytes(uint64_t graph_hash) const;

 private:
  const Units units_;
  const RecordFormat record_;
  const uint64_t chunk_bytes_;
  std::vector<std::optional<ChunkTables>> tables_;  // of each unit
  size_t labelled_count_ = 0;
};

}  // namespace graphlane::share
