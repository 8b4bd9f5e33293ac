#include "tests/engines/windows.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/engines/parallel.h"

namespace engines {
namespace {

constexpr size_t kMemoryReadBytes = 16 << 20;
constexpr size_t kWindowReadBytes = 1 << 20;

std::ifstream open_text(const std::string& path) {
  std::ifstream text(path);
  if (!text) die("%s: cannot be opened: were the shards made?", path.c_str());
  return text;
}

size_t read_number(const std::string& path) {
  std::ifstream text = open_text(path);
  size_t number = 0;
  if (!(text >> number)) die("%s: not a number", path.c_str());
  return number;
}

std::vector<VertexRange> read_intervals(const ShardNames& names, int64_t vertex_count) {
  std::ifstream text = open_text(names.intervals());
  std::vector<VertexRange> intervals;
  int64_t begin = 0;
  for (int64_t last; text >> last; begin = last + 1) intervals.push_back({begin, last + 1});
  if (static_cast<int>(intervals.size()) != names.shard_count || begin != vertex_count) {
    die("%s: not %d intervals of %lld vertices", names.intervals().c_str(), names.shard_count,
        static_cast<long long>(vertex_count));
  }
  return intervals;
}

}  // namespace

AdjacencyReader::AdjacencyReader(const std::string& path, VertexRange targets)
    : file_(path, O_RDONLY), targets_range_(targets), size_bytes_(file_.size_bytes()) {}

void AdjacencyReader::load_whole(int thread_count) {
  buffer_.resize(size_bytes_);
  buffer_begin_ = 0;
  const size_t read_count = (size_bytes_ + kMemoryReadBytes - 1) / kMemoryReadBytes;
  parallel_for(read_count, thread_count, [&](size_t i) {
    const size_t begin = i * kMemoryReadBytes;
    file_.duplicate().pread_exact(buffer_.data() + begin,
                                  std::min(kMemoryReadBytes, size_bytes_ - begin),
                                  static_cast<off_t>(begin));
  });
}

// Loads the `length` bytes at the position into the buffer.
void AdjacencyReader::need(size_t length) {
  const size_t at = position_.byte;
  if (at >= buffer_begin_ && at + length <= buffer_begin_ + buffer_.size()) return;
  if (at + length > size_bytes_) die("%s: offset %zu: cut short", file_.path().c_str(), at);
  buffer_.resize(std::min(kWindowReadBytes, size_bytes_ - at));
  buffer_begin_ = at;
  file_.pread_exact(buffer_.data(), buffer_.size(), static_cast<off_t>(at));
}

template <class T>
T AdjacencyReader::take() {
  need(sizeof(T));
  T value;
  std::memcpy(&value, buffer_.data() + (position_.byte - buffer_begin_), sizeof(T));
  position_.byte += sizeof(T);
  return value;
}

std::span<const uint32_t> AdjacencyReader::next() {
  targets_.clear();
  if (position_.empty_count == 0) {
    size_t count = take<uint8_t>();
    if (count == 0) position_.empty_count = size_t{1} + take<uint8_t>();
    if (count == kLongCount) count = take<uint32_t>();
    for (size_t i = 0; i < count; ++i) {
      targets_.push_back(take<uint32_t>());
      if (!targets_range_.contains(targets_.back())) {
        die("%s: offset %zu: target %u belongs to another shard", file_.path().c_str(),
            position_.byte - sizeof(uint32_t), targets_.back());
      }
    }
  }
  if (position_.empty_count > 0) --position_.empty_count;
  ++position_.vertex;
  position_.edge += targets_.size();
  return targets_;
}

EdgeValues::EdgeValues(const ShardNames& names, int shard, size_t begin, size_t end,
                       size_t edge_count) {
  if (begin == end) return;
  const size_t first_block = begin / kValuesPerBlock;
  const size_t end_block = (end + kValuesPerBlock - 1) / kValuesPerBlock;
  first_edge_ = first_block * kValuesPerBlock;
  values_.resize(std::min(end_block * kValuesPerBlock, edge_count) - first_edge_);
  for (size_t i = first_block; i < end_block; ++i) {
    files_.emplace_back(names.block(shard, i), O_RDWR);
  }
}

std::span<uint32_t> EdgeValues::block(size_t index) {
  const size_t begin = index * kValuesPerBlock;
  return {values_.data() + begin, std::min(kValuesPerBlock, values_.size() - begin)};
}

void EdgeValues::read_block(size_t index) {
  files_[index].pread_exact(block(index).data(), block(index).size_bytes(), 0);
}

void EdgeValues::write_block(size_t index) {
  files_[index].write_all(block(index).data(), block(index).size_bytes());
}

SlidingWindows::SlidingWindows(const std::string& base, int shard_count, int thread_count)
    : names_{base, shard_count},
      thread_count_(thread_count),
      vertex_count_(static_cast<int64_t>(read_number(names_.vertex_count()))),
      intervals_(read_intervals(names_, vertex_count_)),
      vertex_file_(names_.vertex_values(), O_RDWR | O_CREAT, 0606),
      degree_file_(names_.degrees(), O_RDWR),
      windows_(intervals_.size()) {
  vertex_file_.truncate(static_cast<size_t>(vertex_count_) * sizeof(uint32_t));
  for (int p = 0; p < shard_count; ++p) {
    edge_counts_.push_back(read_number(names_.values_size(p)) / sizeof(uint32_t));
  }
}

void SlidingWindows::sweep(const std::function<void(const Vertex&)>& update) {
  readers_.clear();
  for (int p = 0; p < names_.shard_count; ++p) {
    readers_.emplace_back(names_.adjacency(p), intervals_[static_cast<size_t>(p)]);
  }
  for (int p = 0; p < names_.shard_count; ++p) sweep_interval(p, update);
}

void SlidingWindows::sweep_interval(int p, const std::function<void(const Vertex&)>& update) {
  const InEdges in_edges = load_memory_shard(p);
  parallel_for(windows_.size(), thread_count_, [&](size_t shard) {
    if (static_cast<int>(shard) != p) load_window(p, static_cast<int>(shard));
  });
  for_every_block(&EdgeValues::read_block);
  update_vertices(p, in_edges, update);
  for_every_block(&EdgeValues::write_block);
}

SlidingWindows::InEdges SlidingWindows::load_memory_shard(int p) {
  const VertexRange interval = intervals_[static_cast<size_t>(p)];
  const size_t edge_count = edge_counts_[static_cast<size_t>(p)];
  Window& window = windows_[static_cast<size_t>(p)];
  AdjacencyReader reader(names_.adjacency(p), interval);
  reader.load_whole(thread_count_);

  window.out_begin.clear();
  std::vector<uint32_t> target;  // of each edge, from the interval's begin
  target.reserve(edge_count);
  while (reader.position().vertex < vertex_count_) {
    const int64_t source = reader.position().vertex;
    if (interval.contains(source)) window.out_begin.push_back(reader.position().edge);
    if (source == interval.end) readers_[static_cast<size_t>(p)].seek(reader.position());
    for (const uint32_t t : reader.next()) {
      target.push_back(t - static_cast<uint32_t>(interval.begin));
    }
    if (source + 1 == interval.end) window.out_begin.push_back(reader.position().edge);
  }
  if (target.size() != edge_count) {
    die("%s: %zu edges, but %s says %zu", names_.adjacency(p).c_str(), target.size(),
        names_.values_size(p).c_str(), edge_count);
  }
  window.values = EdgeValues(names_, p, 0, edge_count, edge_count);

  // A counting sort of the edges by target.
  InEdges in_edges;
  in_edges.begin.resize(static_cast<size_t>(interval.end - interval.begin) + 1);
  for (const uint32_t t : target) ++in_edges.begin[t + 1];
  for (size_t i = 1; i < in_edges.begin.size(); ++i) in_edges.begin[i] += in_edges.begin[i - 1];
  in_edges.edges.resize(edge_count);
  std::vector<size_t> place = in_edges.begin;
  for (size_t edge = 0; edge < edge_count; ++edge) {
    in_edges.edges[place[target[edge]]++] = static_cast<uint32_t>(edge);
  }
  return in_edges;
}

void SlidingWindows::load_window(int p, int shard) {
  const VertexRange interval = intervals_[static_cast<size_t>(p)];
  AdjacencyReader& reader = readers_[static_cast<size_t>(shard)];
  Window& window = windows_[static_cast<size_t>(shard)];
  window.out_begin.clear();
  while (reader.position().vertex < interval.end) {
    window.out_begin.push_back(reader.position().edge);
    reader.next();
  }
  window.out_begin.push_back(reader.position().edge);
  window.values = EdgeValues(names_, shard, window.out_begin.front(), window.out_begin.back(),
                             edge_counts_[static_cast<size_t>(shard)]);
}

void SlidingWindows::for_every_block(void (EdgeValues::*action)(size_t)) {
  std::vector<std::pair<EdgeValues*, size_t>> blocks;
  for (Window& window : windows_) {
    for (size_t i = 0; i < window.values.block_count(); ++i) blocks.push_back({&window.values, i});
  }
  parallel_for(blocks.size(), thread_count_,
               [&](size_t i) { (blocks[i].first->*action)(blocks[i].second); });
}

void SlidingWindows::update_vertices(int p, const InEdges& in_edges,
                                     const std::function<void(const Vertex&)>& update) {
  const VertexRange interval = intervals_[static_cast<size_t>(p)];
  const auto count = static_cast<size_t>(interval.end - interval.begin);
  std::vector<uint32_t> values(count);
  std::vector<Degrees> degrees(count);
  const auto values_at = static_cast<off_t>(interval.begin) * static_cast<off_t>(sizeof(uint32_t));
  vertex_file_.pread_exact(values.data(), count * sizeof(uint32_t), values_at);
  degree_file_.pread_exact(
      degrees.data(), count * sizeof(Degrees),
      static_cast<off_t>(interval.begin) * static_cast<off_t>(sizeof(Degrees)));

  EdgeValues& memory = windows_[static_cast<size_t>(p)].values;
  std::vector<uint32_t*> in;
  std::vector<uint32_t*> out;
  for (size_t i = 0; i < count; ++i) {
    in.clear();
    out.clear();
    for (size_t e = in_edges.begin[i]; e < in_edges.begin[i + 1]; ++e) {
      in.push_back(&memory[in_edges.edges[e]]);
    }
    for (Window& window : windows_) {
      for (size_t e = window.out_begin[i]; e < window.out_begin[i + 1]; ++e) {
        out.push_back(&window.values[e]);
      }
    }
    update({interval.begin + static_cast<int64_t>(i), values[i], degrees[i], in, out});
  }
  vertex_file_.pwrite_all(values.data(), count * sizeof(uint32_t), values_at);
}

std::vector<uint32_t> SlidingWindows::vertex_values() const {
  std::vector<uint32_t> values(static_cast<size_t>(vertex_count_));
  vertex_file_.pread_exact(values.data(), values.size() * sizeof(uint32_t), 0);
  return values;
}

}  // namespace engines
