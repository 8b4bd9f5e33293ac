#include "graphfmt/output/shards.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>

#include "graphfmt/input/edge_sort.h"
#include "graphfmt/sort/line.h"
#include "graphfmt/staging.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/size.h"

namespace graphlane::graphfmt {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShardBatchEdges = size_t{64} << 10;
constexpr size_t kShardFileBuffer = size_t{1} << 20;
constexpr uint64_t kIndexEdges = uint64_t{1} << 20;  // a line of the index about every so many
constexpr uint32_t kLongList = 255;                  // a count that does not fit into a byte
constexpr uint32_t kZerosMax = 255;                  // vertices without edges, of one mark
constexpr double kShardBytesAuto = 128 << 20;        // GraphChi's, of 1 GiB

// A file that is written once, from its beginning.
class ShardFile {
 public:
  static Outcome<ShardFile> create(const std::string& path) {
    ShardFile file;
    file.path_ = path;
    file.fd_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.fd_) return os_error(errno, path, "cannot create");
    return file;
  }

  // settle() or close() writes it.
  template <class T>
  void put(T value) {
    buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
    written_bytes_ += sizeof value;
  }
  void put(std::string_view text) {
    buffer_.append(text);
    written_bytes_ += text.size();
  }
  uint64_t position() const { return written_bytes_; }

  Outcome<void> settle() { return buffer_.size() < kShardFileBuffer ? Outcome<void>() : flush(); }
  Outcome<void> close() {
    if (auto flushed = flush(); !flushed) return flushed;
    if (::close(fd_.release()) != 0) return os_error(errno, path_, "cannot write");
    return {};
  }

 private:
  Outcome<void> flush() {
    auto written = write_full(fd_.get(), buffer_.data(), buffer_.size());
    if (!written) return os_error(written.error().code, path_, "cannot write");
    buffer_.clear();
    return {};
  }

  Fd fd_;
  std::string path_;
  std::string buffer_;
  uint64_t written_bytes_ = 0;
};

Outcome<void> write_text(const std::string& path, const std::string& text) {
  auto file = ShardFile::create(path);
  if (!file) return file.error();
  file->put(std::string_view(text));
  return file->close();
}

// The edges' values, block by block.
class ValueWriter {
 public:
  ValueWriter(std::string path) : path_(std::move(path)) {}

  Outcome<void> open() {
    if (::mkdir(shard_block_directory(path_).c_str(), 0777) == 0) return {};
    return os_error(errno, shard_block_directory(path_), "cannot create");
  }

  Outcome<void> add(const char* value) {
    if (block_.size() == kShardBlockBytes) {
      if (auto written = write_block(); !written) return written;
    }
    block_.append(value, sizeof(float));
    total_bytes_ += sizeof(float);
    return {};
  }

  // The last block, which may be empty.
  Outcome<void> close() {
    if (auto written = write_block(); !written) return written;
    return write_text(path_ + ".size", std::to_string(total_bytes_));
  }

 private:
  Outcome<void> write_block() {
    uLongf length = ::compressBound(block_.size());
    std::string packed(length, '\0');
    const int status =
        ::compress2(reinterpret_cast<Bytef*>(packed.data()), &length,
                    reinterpret_cast<const Bytef*>(block_.data()), block_.size(), Z_BEST_SPEED);
    if (status != Z_OK) return make_error(ENOMEM, "out of memory");
    packed.resize(length);
    block_.clear();
    return write_text(shard_block_directory(path_) + "/" + std::to_string(block_count_++), packed);
  }

  const std::string path_;
  std::string block_;
  uint64_t block_count_ = 0;
  uint64_t total_bytes_ = 0;
};

// One shard, from edges sorted by source and target.
class ShardWriter {
 public:
  ShardWriter(const std::string& base, uint32_t shard, uint32_t shards)
      : adjacency_path_(shard_adjacency_path(base, shard, shards)),
        values_(shard_values_path(base, shard, shards)) {}

  Outcome<void> open() {
    auto adjacency = ShardFile::create(adjacency_path_);
    if (!adjacency) return adjacency.error();
    adjacency_ = std::move(*adjacency);
    auto index = ShardFile::create(adjacency_path_ + "idx");
    if (!index) return index.error();
    index_ = std::move(*index);
    return values_.open();
  }

  Outcome<void> add(const Edge& edge, const char* value) {
    if (!targets_.empty() && edge.source != source_) {
      if (auto put = put_list(); !put) return put;
    }
    if (targets_.empty()) {
      put_zeros(edge.source - next_source_);
      source_ = edge.source;
    }
    targets_.push_back(edge.target);
    return values_.add(value);
  }

  Outcome<void> close() {
    if (!targets_.empty()) {
      if (auto put = put_list(); !put) return put;
    }
    if (auto closed = adjacency_.close(); !closed) return closed;
    if (auto closed = index_.close(); !closed) return closed;
    return values_.close();
  }

 private:
  // Vertices without edges in this shard.
  void put_zeros(uint32_t count) {
    while (count > 0) {
      const uint32_t marked = std::min(count, kZerosMax);
      adjacency_.put(uint8_t{0});
      adjacency_.put(static_cast<uint8_t>(marked - 1));
      count -= marked;
    }
  }

  Outcome<void> put_list() {
    if (edge_count_ - indexed_ >= kIndexEdges) {
      index_.put(source_);
      index_.put(uint32_t{0});  // as the compiler aligns
      index_.put(adjacency_.position());
      index_.put(edge_count_);
      indexed_ = edge_count_;
    }
    const auto count = static_cast<uint32_t>(targets_.size());
    if (count < kLongList) {
      adjacency_.put(static_cast<uint8_t>(count));
    } else {
      adjacency_.put(static_cast<uint8_t>(kLongList));
      adjacency_.put(count);
    }
    adjacency_.put(std::string_view(reinterpret_cast<const char*>(targets_.data()),
                                    targets_.size() * sizeof(uint32_t)));
    edge_count_ += targets_.size();
    targets_.clear();
    next_source_ = source_ + 1;
    return adjacency_.settle();
  }

  const std::string adjacency_path_;
  ShardFile adjacency_, index_;
  ValueWriter values_;
  uint32_t source_ = 0;
  uint32_t next_source_ = 0;
  std::vector<uint32_t> targets_;
  uint64_t edge_count_ = 0;
  uint64_t indexed_ = 0;
};

// Without self-loops, sorted by target; degrees beside.
class ShardSink : public EdgeSink {
 public:
  ShardSink(EdgeSorter& sorter, size_t edge_bytes) : sorter_(sorter), edge_bytes_(edge_bytes) {}

  Outcome<void> take(EdgeBatch& batch) override {
    const char* from = batch.records.data();
    size_t kept = 0;
    for (size_t i = 0; i < batch.edge_count; ++i, from += edge_bytes_) {
      Edge edge;
      std::memcpy(&edge, from, sizeof edge);
      if (edge.source == edge.target) continue;
      std::memmove(batch.records.data() + kept++ * edge_bytes_, from, edge_bytes_);
    }
    self_loop_count_ += batch.edge_count - kept;
    return sorter_.add(batch.records.data(), kept);
  }
  uint64_t self_loop_count() const { return self_loop_count_; }

 private:
  EdgeSorter& sorter_;
  const size_t edge_bytes_;
  uint64_t self_loop_count_ = 0;
};

struct ShardDegree {
  int32_t in = 0;
  int32_t out = 0;
};

class ShardsBuilder {
 public:
  ShardsBuilder(const ShardsOptions& options, std::string base)
      : options_(options),
        base_(std::move(base)),
        edge_bytes_(edge_size_bytes(options.list.weighted)),
        memory_(options.list.memory_budget_bytes),
        sorter_(EdgeOrder::kTargetSource, edge_bytes_, memory_ / 2, options.list.spill_directory) {}

  Outcome<ShardsSummary> run() {
    ShardSink sink(sorter_, edge_bytes_);
    EdgeListOptions list = options_.list;
    list.weight_type = WeightType::kFloat32;
    list.memory_budget_bytes = memory_ / 4;
    auto read = read_edges(list, sink);
    if (!read) return read.error();
    if (auto finished = sorter_.finish(); !finished) return finished.error();
    const uint64_t edge_count = sorter_.edge_count();
    if (edge_count == 0) return make_error(EINVAL, "{}: no edges but self-loops in it", list.path);
    vertex_count_ = read->vertex_count;
    const uint64_t degree_bytes = vertex_count_ * sizeof(ShardDegree);
    if (degree_bytes > memory_ / 4) {
      return make_error(
          EINVAL, "a memory budget of {}: too small, the degrees of {} vertices need --memory {}M",
          format_size(memory_), vertex_count_, (4 * degree_bytes >> 20) + 1);
    }
    degrees_.resize(vertex_count_);
    shards_ = options_.shards != 0 ? options_.shards : shards_of(edge_count);
    if (auto cut = write_shards(edge_count); !cut) return cut.error();
    if (auto written = write_rest(); !written) return written.error();
    return ShardsSummary{vertex_count_, edge_count, sink.self_loop_count(), shards_, read->notes};
  }

 private:
  static uint32_t shards_of(uint64_t edge_count) {
    return static_cast<uint32_t>(
        1 + static_cast<double>(edge_count * sizeof(float)) / kShardBytesAuto + 0.5);
  }

  // As the sharder cuts: a shard ends behind the target at which it has its share of what is left.
  Outcome<void> write_shards(uint64_t edge_count) {
    uint64_t left = edge_count;
    uint64_t share = edge_count / shards_ + 1;
    Buffer records;
    if (auto grown = records.reserve(kShardBatchEdges * edge_bytes_); !grown) return grown;
    auto shard = new_shard_sorter();
    uint64_t in_shard = 0;
    uint32_t last_target = 0;
    while (true) {
      auto count = sorter_.next(records.data(), kShardBatchEdges);
      if (!count) return count.error();
      if (*count == 0) break;
      const char* record = records.data();
      for (size_t i = 0; i < *count; ++i, record += edge_bytes_) {
        Edge edge;
        std::memcpy(&edge, record, sizeof edge);
        if (in_shard >= share && edge.target != last_target) {
          left -= in_shard;
          if (auto written = finish_shard(*shard, last_target); !written) return written;
          share = left / (shards_ - ends_.size());
          shard = new_shard_sorter();
          in_shard = 0;
        }
        if (auto added = shard->add(record, 1); !added) return added;
        ++in_shard;
        last_target = edge.target;
        ++degrees_[edge.source].out;
        ++degrees_[edge.target].in;
      }
    }
    if (ends_.size() + 1 != shards_) {
      return make_error(
          EINVAL, "{}: {} shards cannot be made, as a target's edges stay together: -p {} or fewer",
          options_.list.path, shards_, ends_.size() + 1);
    }
    return finish_shard(*shard, static_cast<uint32_t>(vertex_count_ - 1));
  }

  std::unique_ptr<EdgeSorter> new_shard_sorter() const {
    return std::make_unique<EdgeSorter>(EdgeOrder::kSourceTarget, edge_bytes_, memory_ / 4,
                                        options_.list.spill_directory);
  }

  Outcome<void> finish_shard(EdgeSorter& sorter, uint32_t last_vertex) {
    if (ends_.size() == shards_) {
      return make_error(EINVAL, "{}: more than {} shards", options_.list.path, shards_);
    }
    ShardWriter writer(base_, static_cast<uint32_t>(ends_.size()), shards_);
    ends_.push_back(last_vertex);
    if (auto opened = writer.open(); !opened) return opened;
    if (auto finished = sorter.finish(); !finished) return finished;
    Buffer records;
    if (auto grown = records.reserve(kShardBatchEdges * edge_bytes_); !grown) return grown;
    const float zero = 0;
    while (true) {
      auto count = sorter.next(records.data(), kShardBatchEdges);
      if (!count) return count.error();
      if (*count == 0) return writer.close();
      const char* record = records.data();
      for (size_t i = 0; i < *count; ++i, record += edge_bytes_) {
        Edge edge;
        std::memcpy(&edge, record, sizeof edge);
        const char* const value =
            edge_bytes_ > sizeof edge ? record + sizeof edge : reinterpret_cast<const char*>(&zero);
        if (auto added = writer.add(edge, value); !added) return added;
      }
    }
  }

  Outcome<void> write_rest() const {
    std::string intervals;
    for (const uint32_t end : ends_) intervals += std::to_string(end) + "\n";
    if (auto done = write_text(fmt::format("{}.{}.intervals", base_, shards_), intervals); !done) {
      return done;
    }
    if (auto done = write_text(base_ + ".numvertices", std::to_string(vertex_count_) + "\n");
        !done) {
      return done;
    }
    auto file = ShardFile::create(base_ + "_degs.bin");
    if (!file) return file.error();
    for (const ShardDegree& degree : degrees_) {
      file->put(degree);
      if (auto done = file->settle(); !done) return done;
    }
    return file->close();
  }

  const ShardsOptions& options_;
  const std::string base_;
  const size_t edge_bytes_;
  const uint64_t memory_;
  EdgeSorter sorter_;
  uint64_t vertex_count_ = 0;
  uint32_t shards_ = 0;
  std::vector<uint32_t> ends_;  // the last vertex of each shard's interval
  std::vector<ShardDegree> degrees_;
};

}  // namespace

std::string shard_adjacency_path(const std::string& base, uint32_t shard, uint32_t shards) {
  return fmt::format("{}.edata_azv.{}_{}.adj", base, shard, shards);
}

std::string shard_values_path(const std::string& base, uint32_t shard, uint32_t shards) {
  return fmt::format("{}.edata..Z.e4B.{}_{}", base, shard, shards);
}

std::string shard_block_directory(const std::string& values_path) {
  return fmt::format("{}_blockdir_{}", values_path, kShardBlockBytes);
}

Outcome<ShardsFound> find_shards(const std::string& dir) {
  std::error_code failed;
  std::vector<ShardsFound> found;
  for (const auto& entry : fs::directory_iterator(dir, failed)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kEnd = ".intervals";
    if (!name.ends_with(kEnd)) continue;
    const std::string front = name.substr(0, name.size() - kEnd.size());
    const size_t dot = front.rfind('.');
    uint32_t shards = 0;
    if (dot == std::string::npos) continue;
    const auto [behind, status] =
        std::from_chars(front.data() + dot + 1, front.data() + front.size(), shards);
    if (status != std::errc{} || behind != front.data() + front.size() || shards == 0) continue;
    found.push_back({dir + "/" + front.substr(0, dot), shards});
  }
  if (found.size() == 1) return found.front();
  return make_error(EINVAL, "{}: {} of GraphChi's shards in it", dir,
                    found.empty() ? "none" : "several sets");
}

Outcome<void> may_become_shards(const std::string& dir) {
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored) || fs::is_empty(dir, ignored) || find_shards(dir)) return {};
  return make_error(EEXIST, "{}: not GraphChi's shards, so it is not overwritten", dir);
}

Outcome<ShardsSummary> build_shards(const ShardsOptions& options) {
  return or_no_memory([&]() -> Outcome<ShardsSummary> {
    if (options.shards > kShardsMax) {
      return make_error(EINVAL, "{} shards: at most {}", options.shards, kShardsMax);
    }
    if (options.overwrite) {
      if (auto may = may_become_shards(options.output); !may) return may.error();
    }
    auto staging = Staging::create(options.output, Staging::Kind::kDirectory, options.overwrite);
    if (!staging) return staging.error();
    auto built = ShardsBuilder(options, staging->path() + "/" + options.name).run();
    if (!built) return staging->with_final_name(built.error(), options.output);
    if (options.overwrite) {  // what has come meanwhile, too
      if (auto may = may_become_shards(options.output); !may) return may.error();
    }
    if (auto committed = staging->commit(); !committed) return committed.error();
    return built;
  });
}

}  // namespace graphlane::graphfmt
