#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "graphfmt/grid/grid_files.h"
#include "graphfmt/grid/grid_layout.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/process/progress.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kCheckBytes = size_t{3} << 20;  // whole edges of both sizes
static_assert(kCheckBytes % sizeof(WeightedEdge) == 0 && kCheckBytes % sizeof(Edge) == 0);

Outcome<uint64_t> size_of(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) return os_error(errno, path, "cannot open");
  if (!S_ISREG(st.st_mode)) return make_error(EINVAL, "{}: not a regular file", path);
  return static_cast<uint64_t>(st.st_size);
}

Outcome<Fd> open_grid_file(const std::string& path) {
  Fd fd = only_regular(Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)));
  if (!fd) return os_error(errno, path, "cannot open");
  return fd;
}

// Reads `length` bytes that must be there.
Outcome<void> read_at(const Fd& fd, const std::string& path, void* to, size_t length,
                      uint64_t offset) {
  auto done = pread_full(fd.get(), to, length, offset);
  if (!done) return os_error(done.error().code, path, "cannot read");
  if (*done < length) {
    return make_error(EINVAL, "{}: byte {}: truncated: {} bytes expected here", path,
                      offset + *done, length - *done);
  }
  return {};
}

Outcome<GridInfo> read_meta(const std::string& dir) {
  const std::string path = dir + "/meta";
  auto fd = open_grid_file(path);
  if (!fd) return fd.error();
  char text[kGridMetaBytesMax];
  auto count = pread_full(fd->get(), text, sizeof text, 0);
  if (!count) return os_error(count.error().code, path, "cannot read");
  return parse_grid_meta(std::string(text, *count), path);
}

// The sizes of all blocks, row-major, in bytes.
Outcome<std::vector<uint64_t>> read_block_sizes(const std::string& dir, const GridInfo& info) {
  std::vector<uint64_t> sizes;
  const size_t edge_bytes = edge_size_bytes(info.weighted);
  uint64_t total = 0;
  for (uint32_t i = 0; i < info.partitions; ++i) {
    for (uint32_t j = 0; j < info.partitions; ++j) {
      const std::string path = block_path(dir, i, j);
      auto size = size_of(path);
      if (!size) return size.error();
      if (*size % edge_bytes != 0) {
        return make_error(EINVAL, "{}: byte {}: truncated: {} of an edge's {} bytes", path,
                          *size / edge_bytes * edge_bytes, *size % edge_bytes, edge_bytes);
      }
      sizes.push_back(*size);
      total += *size;
    }
  }
  if (total / edge_bytes != info.edge_count) {
    return make_error(EINVAL, "{}/meta: says {} edges, but the blocks hold {}", dir,
                      info.edge_count, total / edge_bytes);
  }
  return sizes;
}

// One of `row`, `column`: its size, and its table entry by entry. `order(k)` is
// the block at place k.
template <class Order>
Outcome<void> check_sweep(const std::string& path, const std::vector<uint64_t>& block_sizes,
                          const Order& order) {
  const std::string table_path = path + "_offset";
  auto table_size = size_of(table_path);
  if (!table_size) return table_size.error();
  std::vector<uint64_t> table(block_sizes.size() + 1);
  const uint64_t table_bytes = table.size() * sizeof(uint64_t);
  if (*table_size != table_bytes) {
    return make_error(EINVAL, "{}: byte {}: {} bytes, expected {}", table_path,
                      std::min(*table_size, table_bytes), *table_size, table_bytes);
  }
  auto fd = open_grid_file(table_path);
  if (!fd) return fd.error();
  if (auto done = read_at(*fd, table_path, table.data(), table_bytes, 0); !done) return done;
  uint64_t expected = 0;
  for (size_t k = 0; k < table.size(); ++k) {
    if (table[k] != expected) {
      return make_error(EINVAL, "{}: byte {}: offset {}, but the blocks before it hold {} bytes",
                        table_path, k * sizeof(uint64_t), table[k], expected);
    }
    if (k < block_sizes.size()) expected += block_sizes[order(k)];
  }
  auto size = size_of(path);
  if (!size) return size.error();
  if (*size != expected) {
    return make_error(EINVAL, "{}: byte {}: {} bytes, expected {}", path, std::min(*size, expected),
                      *size, expected);
  }
  return {};
}

struct Grid {
  GridInfo info;
  std::vector<uint64_t> block_sizes;  // row-major, bytes
};

Outcome<Grid> open_grid(const std::string& dir) {
  auto info = read_meta(dir);
  if (!info) return info.error();
  auto sizes = read_block_sizes(dir, *info);
  if (!sizes) return sizes.error();
  const size_t p = info->partitions;
  const auto row_major = [](size_t k) { return k; };
  const auto column_major = [p](size_t k) { return k % p * p + k / p; };
  if (auto row = check_sweep(dir + "/row", *sizes, row_major); !row) return row.error();
  if (auto column = check_sweep(dir + "/column", *sizes, column_major); !column) {
    return column.error();
  }
  return Grid{*info, std::move(*sizes)};
}

// Looks at every edge, block after block.
class EdgeCheck {
 public:
  EdgeCheck(const std::string& dir, const Grid& grid)
      : dir_(dir),
        grid_(grid),
        layout_(grid.info.vertex_count, grid.info.partitions),
        row_start_(starts([](size_t k) { return k; })),
        column_start_(
            starts([p = size_t{grid.info.partitions}](size_t k) { return k % p * p + k / p; })) {}

  Outcome<void> run() {
    for (auto [fd, name] : {std::pair{&row_, "/row"}, std::pair{&column_, "/column"}}) {
      auto opened = open_grid_file(dir_ + name);
      if (!opened) return opened.error();
      *fd = std::move(*opened);
    }
    const uint64_t total = grid_.info.edge_count * edge_size_bytes(grid_.info.weighted);
    Progress progress("check " + dir_, 3 * total);
    return for_each_index<Scratch>(usable_threads(0), layout_.block_count(),
                                   [&](size_t block, Scratch& scratch) -> Outcome<void> {
                                     auto checked = check_block(block, scratch);
                                     progress.add(3 * grid_.block_sizes[block]);
                                     return checked;
                                   });
  }

 private:
  struct Scratch {
    Buffer block, copy;
  };

  // Where each block, row-major, starts in a file that holds them in `order`.
  template <class Order>
  std::vector<uint64_t> starts(const Order& order) const {
    std::vector<uint64_t> start(grid_.block_sizes.size());
    uint64_t at = 0;
    for (size_t k = 0; k < start.size(); ++k) {
      start[order(k)] = at;
      at += grid_.block_sizes[order(k)];
    }
    return start;
  }

  Outcome<void> check_block(size_t block, Scratch& scratch) const {
    if (auto grown = scratch.block.reserve(kCheckBytes); !grown) return grown;
    if (auto grown = scratch.copy.reserve(kCheckBytes); !grown) return grown;
    const size_t p = grid_.info.partitions;
    const std::string path =
        block_path(dir_, static_cast<uint32_t>(block / p), static_cast<uint32_t>(block % p));
    auto fd = open_grid_file(path);
    if (!fd) return fd.error();
    // Then `row` stands for it.
    const bool hole = is_hole(*fd);
    const Fd& first = hole ? row_ : *fd;
    const std::string first_path = hole ? dir_ + "/row" : path;
    const uint64_t first_start = hole ? row_start_[block] : 0;
    for (uint64_t at = 0; at < grid_.block_sizes[block]; at += kCheckBytes) {
      const size_t length = std::min<uint64_t>(kCheckBytes, grid_.block_sizes[block] - at);
      if (auto done = read_at(first, first_path, scratch.block.data(), length, first_start + at);
          !done) {
        return done;
      }
      auto placed =
          grid_.info.weighted
              ? check_places<WeightedEdge>(first_path, block, scratch.block, length,
                                           first_start + at)
              : check_places<Edge>(first_path, block, scratch.block, length, first_start + at);
      if (!placed) return placed;
      auto same = hole ? Outcome<void>()
                       : compare(row_, dir_ + "/row", row_start_[block] + at, length, scratch);
      if (same) {
        same = compare(column_, dir_ + "/column", column_start_[block] + at, length, scratch);
      }
      if (!same) return same;
    }
    return {};
  }

  // Made by --no-blocks.
  static bool is_hole(const Fd& fd) {
    return ::lseek(fd.get(), 0, SEEK_DATA) < 0 && errno == ENXIO;
  }

  template <class E>
  Outcome<void> check_places(const std::string& path, size_t block, const Buffer& edges,
                             size_t length, uint64_t at) const {
    const E* const edge = edges.as<E>();
    const uint64_t vertex_count = grid_.info.vertex_count;
    for (size_t e = 0; e < length / sizeof(E); ++e) {
      if (edge[e].source < vertex_count && edge[e].target < vertex_count &&
          layout_.block_of(edge[e]) == block) {
        continue;
      }
      return make_error(EINVAL, "{}: byte {}: edge {} → {} does not belong in this block", path,
                        at + e * sizeof(E), edge[e].source, edge[e].target);
    }
    return {};
  }

  Outcome<void> compare(const Fd& fd, const std::string& path, uint64_t at, size_t length,
                        Scratch& scratch) const {
    if (auto done = read_at(fd, path, scratch.copy.data(), length, at); !done) return done;
    const auto [block, copy] =
        std::mismatch(scratch.block.data(), scratch.block.data() + length, scratch.copy.data());
    const size_t same_bytes = static_cast<size_t>(block - scratch.block.data());
    if (same_bytes == length) return {};
    return make_error(EINVAL, "{}: byte {}: differs from its block file", path, at + same_bytes);
  }

  const std::string& dir_;
  const Grid& grid_;
  const GridLayout layout_;
  const std::vector<uint64_t> row_start_;
  const std::vector<uint64_t> column_start_;
  Fd row_;
  Fd column_;
};

}  // namespace

Outcome<GridInfo> parse_grid_meta(const std::string& text, const std::string& path) {
  long long type = -1, vertices = 0, edges = 0, partitions = 0;
  int end = 0;
  const int fields = std::sscanf(text.c_str(), "%20lld %20lld %20lld %20lld %n", &type, &vertices,
                                 &edges, &partitions, &end);
  if (fields != 4 || static_cast<size_t>(end) != text.size()) {
    return make_error(
        EINVAL, "{}: byte 0: not GridGraph's four numbers (type, vertices, edges, partitions)",
        path);
  }
  if (type != 0 && type != 1) {
    return make_error(EINVAL, "{}: edge type {}: must be 0 or 1", path, type);
  }
  if (vertices < 1 || vertices > static_cast<long long>(kVertexCountMax)) {
    return make_error(EINVAL, "{}: {} vertices: must be 1 to {}", path, vertices, kVertexCountMax);
  }
  if (edges < 0) return make_error(EINVAL, "{}: {} edges: must not be negative", path, edges);
  const long long edges_max = INT64_MAX / static_cast<long long>(edge_size_bytes(type == 1));
  if (edges > edges_max) {
    return make_error(EINVAL, "{}: {} edges: offsets of 64 bits count {} at most", path, edges,
                      edges_max);
  }
  if (partitions < 1 || partitions > kPartitionsMax) {
    return make_error(EINVAL, "{}: {} partitions: must be 1 to {}", path, partitions,
                      kPartitionsMax);
  }
  return GridInfo{type == 1, static_cast<uint64_t>(vertices), static_cast<uint64_t>(edges),
                  static_cast<uint32_t>(partitions)};
}

Outcome<std::vector<int64_t>> parse_offset_table(std::string_view bytes, const GridInfo& info,
                                                 const std::string& path) {
  const uint64_t table_bytes = offset_table_bytes(info.partitions);
  if (bytes.size() != table_bytes) {
    return make_error(EINVAL, "{}: byte {}: {} bytes, expected {}", path,
                      std::min<uint64_t>(bytes.size(), table_bytes), bytes.size(), table_bytes);
  }
  std::vector<int64_t> table(table_bytes / sizeof(int64_t));
  std::memcpy(table.data(), bytes.data(), table_bytes);
  const auto edge_bytes = static_cast<int64_t>(edge_size_bytes(info.weighted));
  if (table.front() != 0) {
    return make_error(EINVAL, "{}: byte 0: offset {}, expected 0", path, table.front());
  }
  for (size_t k = 1; k < table.size(); ++k) {
    if (table[k] >= table[k - 1] && table[k] % edge_bytes == 0) continue;
    return make_error(EINVAL, "{}: byte {}: offset {}: must be a multiple of {}, from {} on", path,
                      k * sizeof(int64_t), table[k], edge_bytes, table[k - 1]);
  }
  // as parse_grid_meta() says
  const int64_t end = static_cast<int64_t>(info.edge_count) * edge_bytes;
  if (table.back() != end) {
    return make_error(EINVAL, "{}: byte {}: ends at {}, but {} edges (meta) have {} bytes", path,
                      table_bytes - sizeof(int64_t), table.back(), info.edge_count, end);
  }
  return table;
}

Outcome<GridInfo> read_grid(const std::string& dir) {
  return or_no_memory([&]() -> Outcome<GridInfo> {
    auto grid = open_grid(dir);
    if (!grid) return grid.error();
    return grid->info;
  });
}

Outcome<GridInfo> check_grid(const std::string& dir) {
  return or_no_memory([&]() -> Outcome<GridInfo> {
    auto grid = open_grid(dir);
    if (!grid) return grid.error();
    if (auto checked = EdgeCheck(dir, *grid).run(); !checked) return checked.error();
    return grid->info;
  });
}

}  // namespace graphlane::graphfmt
