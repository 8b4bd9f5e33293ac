#include "adapters/share/schedule/labels.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "iomgr/base/crc32c.h"

namespace graphlane::share {
namespace {

uint32_t source_of(const char* edge, RecordFormat record) {
  uint32_t source;
  std::memcpy(&source, edge + record.source_offset_bytes, sizeof source);
  return source;
}

uint32_t crc_of(std::span<const char> bytes) {
  return crc32c(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

uint32_t header_crc(const LabelHeader& header) {
  return crc_of({reinterpret_cast<const char*>(&header), offsetof(LabelHeader, header_crc)});
}

template <class T>
void append(std::string& bytes, const std::vector<T>& items) {
  bytes.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
}

bool rises(std::span<const uint64_t> numbers, uint64_t last) {
  return numbers.front() == 0 && numbers.back() == last &&
         std::is_sorted(numbers.begin(), numbers.end());
}

}  // namespace

void label_chunk(std::span<const char> edges, RecordFormat record, std::vector<ChunkEntry>& table) {
  const size_t edge_count = edges.size() / record.size_bytes;
  if (edge_count == 0) return;
  uint32_t lowest = UINT32_MAX;
  uint32_t highest = 0;
  for (size_t i = 0; i < edge_count; ++i) {
    const uint32_t source = source_of(edges.data() + i * record.size_bytes, record);
    lowest = std::min(lowest, source);
    highest = std::max(highest, source);
  }
  // If the sources lie close together, as in a grid's block, a counting sort does it.
  const uint64_t width = uint64_t{highest} - lowest + 1;
  if (width <= 4 * edge_count) {
    std::vector<uint32_t> counts(width);
    for (size_t i = 0; i < edge_count; ++i) {
      ++counts[source_of(edges.data() + i * record.size_bytes, record) - lowest];
    }
    for (uint64_t i = 0; i < width; ++i) {
      if (counts[i] > 0) table.push_back({static_cast<uint32_t>(lowest + i), counts[i]});
    }
    return;
  }
  std::vector<uint32_t> sources(edge_count);
  for (size_t i = 0; i < edge_count; ++i) {
    sources[i] = source_of(edges.data() + i * record.size_bytes, record);
  }
  std::sort(sources.begin(), sources.end());
  for (size_t i = 0; i < edge_count;) {
    size_t end = i;
    while (end < edge_count && sources[end] == sources[i]) ++end;
    table.push_back({sources[i], static_cast<uint32_t>(end - i)});
    i = end;
  }
}

uint64_t graph_hash(const Layout& layout, std::span<const FileIdentity> files) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&](const void* data, size_t length) {
    for (size_t i = 0; i < length; ++i) {
      hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
    }
  };
  const std::string bytes = layout.to_bytes();
  mix(bytes.data(), bytes.size());
  for (const FileIdentity& file : files) {
    mix(&file.size_bytes, sizeof file.size_bytes);
    mix(&file.modified_ns, sizeof file.modified_ns);
  }
  return hash;
}

Outcome<LabelHeader> parse_label_header(std::span<const char> bytes, uint64_t size_bytes,
                                        uint64_t graph_hash, uint64_t chunk_bytes,
                                        std::span<const uint64_t> partition_bytes) {
  LabelHeader header;
  if (bytes.size() < sizeof header) {
    return make_error(EINVAL, "byte {}: cut short: a header of {} bytes expected", bytes.size(),
                      sizeof header);
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != LabelHeader::kMagic || header.version != LabelHeader::kVersion) {
    return make_error(EINVAL, "byte 0: not chunk labels of version {}", LabelHeader::kVersion);
  }
  if (header.header_crc != header_crc(header)) {
    return make_error(EINVAL, "byte {}: wrong checksum of the header",
                      offsetof(LabelHeader, header_crc));
  }
  if (header.graph_hash != graph_hash || header.partition_count != partition_bytes.size()) {
    return make_error(EINVAL, "byte 8: of another graph");
  }
  if (header.chunk_bytes != chunk_bytes) {
    return make_error(EINVAL, "byte {}: for chunks of {} bytes, not {}",
                      offsetof(LabelHeader, chunk_bytes), header.chunk_bytes, chunk_bytes);
  }
  // The checksum protects against damage, not against a forged header: check the counts.
  uint64_t chunk_count = 0;
  uint64_t edge_count_max = 0;
  for (const uint64_t size : partition_bytes) {
    chunk_count += chunk_count_of(size, chunk_bytes);
    edge_count_max += size / sizeof(uint32_t);  // an edge has at least its source
  }
  if (header.chunk_count != chunk_count || header.entry_count > edge_count_max) {
    return make_error(EINVAL, "byte {}: {} chunks with {} sources: {} expected, {} at most",
                      offsetof(LabelHeader, chunk_count), header.chunk_count, header.entry_count,
                      chunk_count, edge_count_max);
  }
  // Counts in words, because the byte count of a sparse file's edges may exceed 64 bits.
  const uint64_t word_count =
      sizeof header / 8 + header.partition_count + 1 + header.chunk_count + 1 + header.entry_count;
  if (size_bytes % 8 != 0 || size_bytes / 8 != word_count) {
    return make_error(EINVAL, "byte {}: {} bytes expected in all", size_bytes, 8 * word_count);
  }
  return header;
}

Outcome<Labels> Labels::parse(std::span<const char> bytes, uint64_t graph_hash,
                              uint64_t chunk_bytes, std::span<const uint64_t> partition_bytes) {
  const auto parsed =
      parse_label_header(bytes, bytes.size(), graph_hash, chunk_bytes, partition_bytes);
  if (!parsed) return parsed.error();
  Labels labels;
  const LabelHeader& header = labels.header_ = *parsed;
  if (header.payload_crc != crc_of(bytes.subspan(sizeof header))) {
    return make_error(EINVAL, "byte {}: wrong checksum of the tables",
                      offsetof(LabelHeader, payload_crc));
  }
  const char* at = bytes.data() + sizeof header;
  labels.first_chunk_ = {reinterpret_cast<const uint64_t*>(at), header.partition_count + size_t{1}};
  at += labels.first_chunk_.size_bytes();
  labels.first_entry_ = {reinterpret_cast<const uint64_t*>(at), header.chunk_count + size_t{1}};
  at += labels.first_entry_.size_bytes();
  labels.entries_ = {reinterpret_cast<const ChunkEntry*>(at), header.entry_count};
  if (!rises(labels.first_chunk_, header.chunk_count) ||
      !rises(labels.first_entry_, header.entry_count)) {
    return make_error(EINVAL, "byte {}: the tables' offsets are out of order", sizeof header);
  }
  for (uint32_t p = 0; p < header.partition_count; ++p) {
    const uint64_t chunk_count = chunk_count_of(partition_bytes[p], header.chunk_bytes);
    if (labels.first_chunk_[p + 1] - labels.first_chunk_[p] != chunk_count) {
      return make_error(EINVAL, "byte {}: not {} chunks of partition {}", sizeof header + 8 * p,
                        chunk_count, p);
    }
  }
  return labels;
}

uint64_t count_active_edges(std::span<const ChunkEntry> table, VertexBits active) {
  uint64_t count = 0;
  for (const ChunkEntry& entry : table) {
    const size_t word = entry.vertex / 64;
    if (word < active.size() && (active[word] >> entry.vertex % 64 & 1) != 0) {
      count += entry.edge_count;
    }
  }
  return count;
}

bool any_active_edge(std::span<const ChunkEntry> table, VertexBits active) {
  return std::any_of(table.begin(), table.end(), [&](const ChunkEntry& entry) {
    const size_t word = entry.vertex / 64;
    return word < active.size() && (active[word] >> entry.vertex % 64 & 1) != 0;
  });
}

ChunkTables label_chunks(std::span<const char> bytes, RecordFormat record, uint64_t chunk_bytes) {
  ChunkTables tables;
  for (uint64_t begin = 0; begin < bytes.size(); begin += chunk_bytes) {
    const uint64_t length = std::min<uint64_t>(chunk_bytes, bytes.size() - begin);
    label_chunk(bytes.subspan(begin, length), record, tables.entries);
    tables.chunk_ends.push_back(tables.entries.size());
  }
  return tables;
}

void LabelBuilder::add(uint32_t unit, ChunkTables tables) {
  assert(!tables_[unit]);
  tables_[unit] = std::move(tables);
  ++labelled_count_;
}

std::string LabelBuilder::to_bytes(uint64_t graph_hash) const {
  assert(complete());
  std::vector<uint64_t> first_chunk{0};
  std::vector<uint64_t> first_entry{0};
  for (uint32_t unit = 0; unit < tables_.size(); ++unit) {
    const uint64_t before = first_entry.back();
    for (const uint64_t end : tables_[unit]->chunk_ends) first_entry.push_back(before + end);
    if (units_.is_last(unit)) first_chunk.push_back(first_entry.size() - 1);
  }
  LabelHeader header{.graph_hash = graph_hash,
                     .chunk_bytes = chunk_bytes_,
                     .chunk_count = first_entry.size() - 1,
                     .entry_count = first_entry.back(),
                     .partition_count = units_.partition_count(),
                     .record_bytes = record_.size_bytes};
  std::string bytes(sizeof header, '\0');
  bytes.reserve(sizeof header + 8 * (first_chunk.size() + first_entry.size() + header.entry_count));
  append(bytes, first_chunk);
  append(bytes, first_entry);
  for (const auto& tables : tables_) append(bytes, tables->entries);
  header.payload_crc = crc_of(std::span(bytes).subspan(sizeof header));
  header.header_crc = header_crc(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace graphlane::share
