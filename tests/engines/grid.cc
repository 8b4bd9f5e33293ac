#include "tests/engines/grid.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

#include "tests/engines/parallel.h"

namespace engines {
namespace {

constexpr size_t kReadBytes = 24 << 20;
constexpr size_t kBufferAlignment = 4096;
constexpr size_t kQueueCapacity = 65536;
constexpr double kVertexShare = 0.8;  // of the memory, for vertex data

// Reads stay aligned for O_DIRECT and whole in edges: 12288 = 3 * 4096 = 1024 * 12.
constexpr size_t kWeightedPageBytes = 12288;
static_assert(kReadBytes % kPageBytes == 0 && kReadBytes % kWeightedPageBytes == 0);

struct Read {
  int64_t offset;
  size_t length;
};

}  // namespace

Grid::Grid(std::string directory, const GridOptions& options)
    : directory_(std::move(directory)), options_(options) {
  const std::string meta = directory_ + "/meta";
  FILE* file = std::fopen(meta.c_str(), "r");
  if (file == nullptr) die("%s: cannot be opened: is this a grid?", meta.c_str());
  int type = 0;
  int vertices = 0;
  long edges = 0;
  const int fields = std::fscanf(file, "%d %d %ld %d", &type, &vertices, &edges, &partition_count_);
  std::fclose(file);
  if (fields != 4 || type < 0 || type > 1 || vertices < 1 || edges < 0 || partition_count_ < 1) {
    die("%s: not 'type vertices edges partitions'", meta.c_str());
  }
  vertex_count_ = vertices;
  edge_count_ = edges;
  edge_bytes_ = type == 0 ? sizeof(Edge) : sizeof(Edge) + sizeof(float);
  page_bytes_ = type == 0 ? kPageBytes : kWeightedPageBytes;

  for (int i = 0; i < partition_count_; ++i) {
    for (int j = 0; j < partition_count_; ++j) {
      const std::string block =
          directory_ + "/block-" + std::to_string(i) + "-" + std::to_string(j);
      block_bytes_.push_back(file_size_bytes(block));
      if (block_bytes_.back() < 0) die("%s: missing", block.c_str());
    }
  }
  column_offset_ = read_offsets("column_offset");
  row_offset_ = read_offsets("row_offset");

  for (int t = 0; t < options_.thread_count; ++t) {
    buffers_.emplace_back(static_cast<char*>(std::aligned_alloc(kBufferAlignment, kReadBytes)));
    if (!buffers_.back()) die("no memory for a read buffer of %zu bytes", kReadBytes);
  }
}

std::vector<int64_t> Grid::read_offsets(const std::string& name) const {
  std::vector<int64_t> offsets(static_cast<size_t>(partition_count_ * partition_count_) + 1);
  const size_t bytes = offsets.size() * sizeof(int64_t);
  const File file(directory_ + "/" + name, O_RDONLY);
  if (::read(file.fd(), offsets.data(), bytes) != static_cast<ssize_t>(bytes)) {
    die("%s: not %zu bytes", file.path().c_str(), bytes);
  }
  if (offsets.back() != edge_count_ * static_cast<int64_t>(edge_bytes_)) {
    die("%s: ends at %lld, but meta says %lld edges", file.path().c_str(),
        static_cast<long long>(offsets.back()), static_cast<long long>(edge_count_));
  }
  return offsets;
}

// V = P * q + r: the first r partitions have q + 1 vertices, the others q.
VertexRange Grid::partition(int index) const {
  const int64_t q = vertex_count_ / partition_count_;
  const int64_t r = vertex_count_ % partition_count_;
  const auto begin = [&](int64_t p) { return p * q + std::min(p, r); };
  return {begin(index), begin(index + 1)};
}

VertexRange Grid::partitions(int begin, int end) const {
  return {partition(begin).begin, partition(end - 1).end};
}

int Grid::read_flags(const Sweep& sweep) const {
  int64_t active_bytes = 0;
  for (int i = 0; i < partition_count_; ++i) {
    for (int j = 0; j < partition_count_; ++j) {
      const auto block = static_cast<size_t>(i * partition_count_ + j);
      if (sweep.wants(i, j)) active_bytes += block_bytes_[block];
    }
  }
  const bool direct = options_.direct == DirectIo::kAlways ||
                      (options_.direct == DirectIo::kAuto && options_.memory_bytes < active_bytes);
  return direct ? O_RDONLY | O_DIRECT : O_RDONLY;
}

int Grid::window_partitions(int64_t vertex_bytes) const {
  const double share = kVertexShare * static_cast<double>(options_.memory_bytes);
  const double windows = std::ceil(static_cast<double>(vertex_bytes) / std::max(share, 1.0));
  return std::max(1, static_cast<int>(partition_count_ / std::max(windows, 1.0)));
}

void Grid::stream(const File& file, const std::vector<int64_t>& offsets, bool by_column,
                  const Sweep& sweep, const Consume& consume) {
  ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const int64_t file_end = offsets.back();
  const auto page = static_cast<int64_t>(page_bytes_);
  const int window_size = by_column ? window_partitions(sweep.vertex_bytes) : partition_count_;
  std::atomic<int64_t> bytes_read{0};

  for (int first = 0; first < partition_count_; first += window_size) {
    const int last = std::min(first + window_size, partition_count_);
    const VertexRange window = partitions(first, last);
    sweep.before_window(window);

    WorkQueue<Read> queue(kQueueCapacity);
    std::vector<std::thread> threads;
    for (const Buffer& buffer : buffers_) {
      threads.emplace_back([&, bytes = buffer.get()] {
        for (Read read; queue.pop(read);) {
          const size_t expected =
              std::min(read.length, static_cast<size_t>(file_end - read.offset));
          file.pread_expecting(bytes, read.length, read.offset, expected);
          bytes_read += static_cast<int64_t>(expected);
          consume({bytes, bytes + expected, edge_bytes_, window});
        }
      });
    }

    int64_t offset = 0;  // up to here the file is queued or skipped
    const auto push_block = [&](int64_t begin, int64_t end) {
      if (begin - offset >= page) offset = begin / page * page;
      while (end > offset) {
        const int64_t rest = (end - offset + page - 1) / page * page;
        const int64_t length = std::min(rest, static_cast<int64_t>(kReadBytes));
        queue.push({offset, static_cast<size_t>(length)});
        offset += length;
      }
    };
    for (int outer = 0; outer < partition_count_; ++outer) {
      for (int inner = first; inner < last; ++inner) {
        const int i = by_column ? inner : outer;
        const int j = by_column ? outer : inner;
        const auto at = static_cast<size_t>(outer * partition_count_ + inner);
        if (sweep.wants(i, j)) push_block(offsets[at], offsets[at + 1]);
      }
    }
    queue.close();
    for (std::thread& thread : threads) thread.join();
    sweep.after_window(window);
  }
  bytes_streamed_ += bytes_read;
}

void Grid::stream_vertices(int64_t vertex_bytes, const std::function<void(int64_t)>& process,
                           const std::function<void(VertexRange)>& load,
                           const std::function<void()>& save) const {
  const bool out_of_core =
      static_cast<double>(vertex_bytes) > kVertexShare * static_cast<double>(options_.memory_bytes);
  const int window_size = out_of_core ? window_partitions(vertex_bytes) : partition_count_;
  for (int first = 0; first < partition_count_; first += window_size) {
    const int last = std::min(first + window_size, partition_count_);
    if (out_of_core) load(partitions(first, last));
    parallel_for(static_cast<size_t>(last - first), options_.thread_count, [&](size_t p) {
      const VertexRange range = partition(first + static_cast<int>(p));
      for (int64_t v = range.begin; v < range.end; ++v) process(v);
    });
    if (out_of_core) save();
  }
}

}  // namespace engines
