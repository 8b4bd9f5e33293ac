#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/engines/posix.h"
#include "tests/engines/shards.h"

namespace engines {
namespace {

struct Edge {
  int32_t source;
  int32_t target;
};

std::vector<Edge> read_edges(const std::string& path) {
  const File file(path, O_RDONLY);
  const size_t bytes = file.size_bytes();
  if (bytes == 0 || bytes % sizeof(Edge) != 0) {
    die("%s: %zu bytes are no list of int32 pairs", path.c_str(), bytes);
  }
  std::vector<Edge> edges(bytes / sizeof(Edge));
  constexpr size_t kReadBytes = 16 << 20;
  for (size_t at = 0; at < bytes; at += kReadBytes) {
    file.pread_exact(reinterpret_cast<char*>(edges.data()) + at, std::min(kReadBytes, bytes - at),
                     static_cast<off_t>(at));
  }
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].source < 0 || edges[i].target < 0) {
      die("%s: edge %zu: vertex below 0", path.c_str(), i);
    }
  }
  return edges;
}

std::vector<Degrees> count_degrees(const std::vector<Edge>& edges) {
  int32_t last = 0;
  for (const Edge& edge : edges) last = std::max({last, edge.source, edge.target});
  std::vector<Degrees> degrees(static_cast<size_t>(last) + 1);
  for (const Edge& edge : edges) {
    ++degrees[static_cast<size_t>(edge.source)].out;
    ++degrees[static_cast<size_t>(edge.target)].in;
  }
  return degrees;
}

// The last vertex of each interval; every interval gets about E / S edges, and
// at least one vertex.
std::vector<int64_t> cut_intervals(const std::vector<Degrees>& degrees, size_t edge_count,
                                   int shard_count) {
  const auto vertex_count = static_cast<int64_t>(degrees.size());
  if (vertex_count < shard_count) die("--shards %d: more than vertices", shard_count);
  std::vector<int64_t> last;
  size_t seen = 0;
  for (int64_t v = 0; v < vertex_count; ++v) {
    seen += static_cast<size_t>(degrees[static_cast<size_t>(v)].in);
    const auto made = static_cast<int>(last.size());
    if (made + 1 == shard_count) break;
    const bool full =
        seen * static_cast<size_t>(shard_count) >= edge_count * static_cast<size_t>(made + 1);
    const bool must_leave = vertex_count - v - 1 == shard_count - made - 1;
    if (full || must_leave) last.push_back(v);
  }
  last.push_back(vertex_count - 1);
  return last;
}

class AdjacencyWriter {
 public:
  void add(const Edge* first, size_t count) {
    flush_empty();
    put(static_cast<uint8_t>(std::min<size_t>(count, kLongCount)));
    if (count >= kLongCount) put(static_cast<uint32_t>(count));
    for (size_t i = 0; i < count; ++i) put(static_cast<uint32_t>(first[i].target));
  }
  void add_empty() {
    if (++empty_count_ == 256) flush_empty();
  }
  void write(const std::string& path) {
    flush_empty();
    const File file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    file.write_all(bytes_.data(), bytes_.size());
  }

 private:
  template <class T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void flush_empty() {
    if (empty_count_ == 0) return;
    put(uint8_t{0});
    put(static_cast<uint8_t>(empty_count_ - 1));
    empty_count_ = 0;
  }

  std::string bytes_;
  size_t empty_count_ = 0;
};

void write_adjacency(const std::string& path, const std::vector<Edge>& edges,
                     int64_t vertex_count) {
  AdjacencyWriter writer;
  size_t at = 0;
  for (int64_t v = 0; v < vertex_count; ++v) {
    size_t end = at;
    while (end < edges.size() && edges[end].source == v) ++end;
    if (end == at) {
      writer.add_empty();
    } else {
      writer.add(&edges[at], end - at);
    }
    at = end;
  }
  writer.write(path);
}

void write_values(const ShardNames& names, int p, size_t edge_count) {
  std::ofstream(names.values_size(p)) << edge_count * sizeof(uint32_t) << "\n";
  if (::mkdir(names.block_directory(p).c_str(), 0777) != 0 && errno != EEXIST) {
    die("%s: mkdir: %s", names.block_directory(p).c_str(), std::strerror(errno));
  }
  const std::vector<uint32_t> zeros(kValuesPerBlock);
  for (size_t i = 0; i * kValuesPerBlock < edge_count; ++i) {
    const File file(names.block(p, i), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const size_t values = std::min(kValuesPerBlock, edge_count - i * kValuesPerBlock);
    file.write_all(zeros.data(), values * sizeof(uint32_t));
  }
}

}  // namespace

void make_shards(const std::string& edge_file, const std::string& base, int shard_count) {
  const ShardNames names{base, shard_count};
  const std::vector<Edge> edges = read_edges(edge_file);
  const std::vector<Degrees> degrees = count_degrees(edges);
  const std::vector<int64_t> last = cut_intervals(degrees, edges.size(), shard_count);

  std::vector<std::vector<Edge>> shards(static_cast<size_t>(shard_count));
  for (const Edge& edge : edges) {
    const auto p = std::lower_bound(last.begin(), last.end(), edge.target) - last.begin();
    shards[static_cast<size_t>(p)].push_back(edge);
  }
  for (int p = 0; p < shard_count; ++p) {
    std::vector<Edge>& shard = shards[static_cast<size_t>(p)];
    std::stable_sort(shard.begin(), shard.end(),
                     [](const Edge& a, const Edge& b) { return a.source < b.source; });
    write_adjacency(names.adjacency(p), shard, static_cast<int64_t>(degrees.size()));
    write_values(names, p, shard.size());
  }

  std::ofstream(names.vertex_count()) << degrees.size() << "\n";
  std::ofstream intervals(names.intervals());
  for (const int64_t v : last) intervals << v << "\n";
  const File file(names.degrees(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  file.write_all(degrees.data(), degrees.size() * sizeof(Degrees));
  std::printf("%zu vertices, %zu edges in %d shards\n", degrees.size(), edges.size(), shard_count);
}

}  // namespace engines
