// Reads graphs that are directories, as edge lists.
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <optional>

#include "graphfmt/dual/dual_read.h"
#include "graphfmt/grid/grid.h"
#include "graphfmt/input/edge_source.h"
#include "graphfmt/input/weights.h"
#include "graphfmt/lists/lists_read.h"
#include "graphfmt/output/npy.h"
#include "graphfmt/output/shards.h"
#include "graphfmt/pages/pages_read.h"
#include "graphfmt/sort/line.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kDirectoryBatchEdges = size_t{64} << 10;

bool has_file(const std::string& dir, const std::string& name) {
  struct stat st;
  return ::stat((dir + "/" + name).c_str(), &st) == 0;
}

// `row` is a binary list, block after block.
ReadResult read_grid_edges(const EdgeListOptions& options, const EdgeTarget& target) {
  const Outcome<GridInfo> info = read_grid(options.path);
  if (!info) return info.error();
  if (info->weighted != options.weighted) {
    return make_error(EINVAL, "{}: a grid {} weights: {}", options.path,
                      info->weighted ? "with" : "without",
                      info->weighted ? "-w keeps them" : "leave -w out");
  }
  EdgeListOptions row = options;
  row.path = options.path + "/row";
  row.format = EdgeFormat::kBin;
  row.stored_weights = WeightType::kFloat32;
  auto source = ByteSource::open(row.path, Compression::kNone);
  if (!source) return source.error();
  ReadResult result = read_binary(**source, row, target);
  if (result) result->vertex_count = info->vertex_count;
  return result;
}

// One edge after the other, from what is read in order; batches go on in parallel.
class SerialReader {
 public:
  struct Item {
    EdgeBatch batch;
    Buffer names;
    size_t names_bytes = 0;
  };

  static constexpr size_t kNumberMax = 12;
  static constexpr size_t kNamesBytesMax = 2 * (kNumberMax + sizeof(uint32_t)) + sizeof(double);

  SerialReader(const EdgeListOptions& options, const EdgeTarget& target)
      : options_(options), target_(target) {}

  // As parse_names() does.
  static void put_names(Item& item, const Edge& edge, const char* weight, size_t weight_bytes) {
    char* at = item.names.data() + item.names_bytes;
    for (const uint32_t vertex : {edge.source, edge.target}) {
      char* const behind = std::to_chars(at + 4, at + 4 + kNumberMax, vertex).ptr;
      const auto length = static_cast<uint32_t>(behind - at - 4);
      std::memcpy(at, &length, sizeof length);
      at = behind;
    }
    std::memcpy(at, weight, weight_bytes);
    item.names_bytes = static_cast<size_t>(at + weight_bytes - item.names.data());
  }

  // `next` gives one edge and its weight as the sink's type; false: there are no more.
  Outcome<uint64_t> run(const std::function<Outcome<bool>(Edge&, char*)>& next) {
    uint64_t edge_count = 0;
    Line<Item> line;
    line.load = [&](Item& item) { return load(item, next); };
    line.work = [this](Item& item) {
      return target_.numbers != nullptr ? target_.numbers->prepare(item.batch) : Outcome<void>();
    };
    line.unload = [&](Item& item) {
      edge_count += item.batch.edge_count;
      return target_.numbers != nullptr
                 ? target_.numbers->take(item.batch)
                 : target_.names->take_names(item.names.data(), item.names_bytes,
                                             item.batch.edge_count);
    };
    line.settle = [this](Item&) {
      return target_.numbers != nullptr ? target_.numbers->settle() : Outcome<void>();
    };
    if (auto done = line.run(usable_threads(options_.threads)); !done) return done.error();
    return edge_count;
  }

 private:
  Outcome<bool> load(Item& item, const std::function<Outcome<bool>(Edge&, char*)>& next) {
    EdgeBatch& batch = item.batch;
    batch.weighted = options_.weighted;
    batch.weight_type = options_.weight_type;
    batch.edge_count = 0;
    item.names_bytes = 0;
    const size_t edge_bytes = batch.edge_bytes();
    if (auto grown = batch.records.reserve(kDirectoryBatchEdges * edge_bytes); !grown) {
      return grown.error();
    }
    if (target_.names != nullptr) {
      if (auto grown = item.names.reserve(kDirectoryBatchEdges * kNamesBytesMax); !grown) {
        return grown.error();
      }
    }
    while (batch.edge_count < kDirectoryBatchEdges) {
      char* const record = batch.records.data() + batch.edge_count * edge_bytes;
      Edge edge{};
      auto more = next(edge, record + sizeof edge);
      if (!more) return more.error();
      if (!*more) break;
      std::memcpy(record, &edge, sizeof edge);
      ++batch.edge_count;
      if (target_.names != nullptr) {
        put_names(item, edge, record + sizeof edge, edge_bytes - sizeof edge);
      }
    }
    return batch.edge_count > 0;
  }

  const EdgeListOptions& options_;
  const EdgeTarget target_;
};

// Numbers of an array, a few thousand at a time.
class NumberStream {
 public:
  explicit NumberStream(NpyReader reader) : reader_(std::move(reader)) {}

  const NpyReader& array() const { return reader_; }
  // One more is known to be there.
  Outcome<uint64_t> next() {
    if (at_ == end_) {
      end_ = std::min<uint64_t>(std::size(numbers_), reader_.count() - taken_);
      at_ = 0;
      if (end_ == 0) return make_error(EINVAL, "{}: fewer numbers than are needed", reader_.path());
      if (auto done = reader_.read_numbers(numbers_, end_); !done) return done.error();
      taken_ += end_;
    }
    return numbers_[at_++];
  }

 private:
  NpyReader reader_;
  uint64_t numbers_[4096];
  size_t at_ = 0, end_ = 0;
  uint64_t taken_ = 0;
};

Outcome<NpyReader> open_numbers(const std::string& path) {
  auto reader = NpyReader::open(path);
  if (reader && reader->descr()[1] == 'f') {
    return make_error(EINVAL, "{}: numbers of type '{}', where whole ones are expected", path,
                      reader->descr());
  }
  return reader;
}

std::optional<WeightType> weight_type_of(const std::string& descr) {
  if (descr == "<f4") return WeightType::kFloat32;
  if (descr == "<f8") return WeightType::kFloat64;
  if (descr == "<i8") return WeightType::kInt64;
  return std::nullopt;
}

ReadResult read_csr_edges(const EdgeListOptions& options, const EdgeTarget& target) {
  const std::string& dir = options.path;
  auto indptr_array = open_numbers(dir + "/indptr.npy");
  if (!indptr_array) return indptr_array.error();
  auto indices_array = open_numbers(dir + "/indices.npy");
  if (!indices_array) return indices_array.error();
  NumberStream indptr(std::move(*indptr_array)), indices(std::move(*indices_array));
  const uint64_t edge_count = indices.array().count();
  if (indptr.array().count() == 0) {
    return make_error(EINVAL, "{}: no numbers in it", indptr.array().path());
  }
  const uint64_t vertex_count = indptr.array().count() - 1;
  const uint64_t limit = options.vertices != 0 ? options.vertices : options.vertex_count_max;
  if (target.numbers != nullptr && vertex_count > limit) {
    return make_error(EINVAL, "{}: {} vertices: this output has at most {}", dir, vertex_count,
                      limit);
  }
  std::optional<NpyReader> data;
  std::optional<WeightType> data_type;
  if (options.weighted) {
    auto opened = NpyReader::open(dir + "/data.npy");
    if (!opened) return opened.error();
    data_type = weight_type_of(opened->descr());
    if (!data_type) {
      return make_error(EINVAL, "{}: weights of type '{}' are not read", opened->path(),
                        opened->descr());
    }
    if (opened->count() != edge_count) {
      return make_error(EINVAL, "{}: {} weights for {} edges", opened->path(), opened->count(),
                        edge_count);
    }
    data = std::move(*opened);
  }
  const auto first = indptr.next();
  if (!first) return first.error();
  if (*first != 0) {
    return make_error(EINVAL, "{}: begins with {}, not with 0", indptr.array().path(), *first);
  }
  // `source` - 1 has the list that ends at list_end
  uint64_t source = 0, edge_index = 0, list_end = 0;
  const auto next = [&](Edge& edge, char* weight) -> Outcome<bool> {
    while (edge_index == list_end) {
      if (source == vertex_count) return false;
      auto end = indptr.next();
      if (!end) return end.error();
      if (*end < list_end || *end > edge_count) {
        return make_error(EINVAL, "{}: number {} is {}: must be from {} to {}",
                          indptr.array().path(), source + 1, *end, list_end, edge_count);
      }
      list_end = *end;
      ++source;
    }
    auto goal = indices.next();
    if (!goal) return goal.error();
    if (*goal >= vertex_count) {
      return make_error(EINVAL, "{}: number {} is {}: not below the {} vertices",
                        indices.array().path(), edge_index, *goal, vertex_count);
    }
    edge = {static_cast<uint32_t>(source - 1), static_cast<uint32_t>(*goal)};
    ++edge_index;
    if (!data) return true;
    char stored[8];
    if (auto read = data->read(stored, 1); !read) return read.error();
    const WeightFit fit = convert_weight(stored, *data_type, weight, options.weight_type);
    if (fit == WeightFit::kNotNumber || (fit != WeightFit::kKept && !options.round_weights)) {
      return make_error(EINVAL,
                        "{}: number {} is not a weight of type {} (--round takes the nearest)",
                        data->path(), edge_index - 1, name_of(options.weight_type));
    }
    return true;
  };
  auto count = SerialReader(options, target).run(next);
  if (!count) return count.error();
  if (*count != edge_count) {
    return make_error(EINVAL, "{}: ends at {}, but there are {} targets", indptr.array().path(),
                      *count, edge_count);
  }
  if (*count == 0) return make_error(EINVAL, "{}: no edges in it", dir);
  EdgeListSummary summary{.edge_count = *count, .vertex_count = vertex_count};
  if (!data && has_file(dir, "data.npy")) {
    summary.notes.push_back("data.npy is left out (-w keeps weights)");
  }
  return summary;
}

// A shard's lists, one source after the other.
class ShardReader {
 public:
  ShardReader(const ShardsFound& found, uint32_t shard, bool weighted)
      : values_path_(shard_values_path(found.base, shard, found.shards)),
        adjacency_path_(shard_adjacency_path(found.base, shard, found.shards)),
        weighted_(weighted) {}

  Outcome<void> open() {
    auto source = ByteSource::open(adjacency_path_, Compression::kNone);
    if (!source) return source.error();
    adjacency_ = std::move(*source);
    return {};
  }

  // False: the shard has ended.
  Outcome<bool> next(Edge& edge, float& value) {
    while (left_ == 0) {
      auto count = adjacency_->read(reinterpret_cast<char*>(&count_byte_), 1);
      if (!count) return count.error();
      if (*count == 0) return false;
      if (count_byte_ == 0) {
        uint8_t more = 0;
        if (auto read = take(&more, sizeof more); !read) return read.error();
        source_ += 1u + more;
        continue;
      }
      left_ = count_byte_;
      if (count_byte_ == 255) {
        if (auto read = take(&left_, sizeof left_); !read) return read.error();
      }
      ++source_;
    }
    if (auto read = take(&edge.target, sizeof edge.target); !read) return read.error();
    // A damaged shard may count past the largest vertex; the caller refuses that one.
    edge.source = static_cast<uint32_t>(std::min<uint64_t>(source_ - 1, UINT32_MAX));
    --left_;
    return weighted_ ? next_value(value) : true;
  }

  const std::string& path() const { return adjacency_path_; }

 private:
  Outcome<void> take(void* to, size_t length) {
    auto count = adjacency_->read(static_cast<char*>(to), length);
    if (!count) return count.error();
    if (*count != length) return make_error(EINVAL, "{}: truncated", adjacency_path_);
    return {};
  }

  Outcome<bool> next_value(float& value) {
    if (!values_ || in_block_ == kShardBlockBytes / sizeof value) {
      const std::string path = shard_block_directory(values_path_) + "/" + std::to_string(block_++);
      auto opened = ByteSource::open(path, Compression::kZlib);
      if (!opened) return opened.error();
      values_ = std::move(*opened);
      in_block_ = 0;
    }
    auto count = values_->read(reinterpret_cast<char*>(&value), sizeof value);
    if (!count) return count.error();
    if (*count != sizeof value) {
      return make_error(EINVAL, "{}: fewer values than edges", values_->name());
    }
    ++in_block_;
    return true;
  }

  const std::string values_path_;
  const std::string adjacency_path_;
  const bool weighted_;
  std::unique_ptr<ByteSource> adjacency_, values_;
  uint64_t block_ = 0;
  size_t in_block_ = 0;
  uint8_t count_byte_ = 0;
  uint32_t left_ = 0;
  uint64_t source_ = 0;  // one past the source of the current list
};

ReadResult read_shard_edges(const EdgeListOptions& options, const EdgeTarget& target) {
  const Outcome<ShardsFound> found = find_shards(options.path);
  if (!found) return found.error();
  const std::string count_path = found->base + ".numvertices";
  auto count_file = ByteSource::open(count_path, Compression::kNone);
  if (!count_file) return count_file.error();
  const std::string_view text = (*count_file)->head();
  uint64_t vertex_count = 0;
  std::from_chars(text.data(), text.data() + text.size(), vertex_count);
  const uint64_t limit = options.vertices != 0 ? options.vertices : options.vertex_count_max;
  if (vertex_count == 0 || (target.numbers != nullptr && vertex_count > limit)) {
    return make_error(EINVAL, "{}: {} vertices: must be 1 to {}", count_path, vertex_count, limit);
  }
  std::optional<ShardReader> reader;
  uint32_t shard = 0;
  const auto next = [&](Edge& edge, char* weight) -> Outcome<bool> {
    while (true) {
      if (!reader) {
        if (shard == found->shards) return false;
        reader.emplace(*found, shard++, options.weighted);
        if (auto opened = reader->open(); !opened) return opened.error();
      }
      float value = 0;
      auto more = reader->next(edge, value);
      if (!more) return more.error();
      if (!*more) {
        reader.reset();
        continue;
      }
      if (std::max(edge.source, edge.target) >= vertex_count) {
        return make_error(EINVAL, "{}: edge {} → {}: not below the {} vertices", reader->path(),
                          edge.source, edge.target, vertex_count);
      }
      if (!options.weighted) return true;
      const WeightFit fit = convert_weight(reinterpret_cast<const char*>(&value),
                                           WeightType::kFloat32, weight, options.weight_type);
      if (fit == WeightFit::kNotNumber || (fit != WeightFit::kKept && !options.round_weights)) {
        return make_error(EINVAL, "{}: the value of {} → {} is not a weight of type {}",
                          reader->path(), edge.source, edge.target, name_of(options.weight_type));
      }
      return true;
    }
  };
  auto count = SerialReader(options, target).run(next);
  if (!count) return count.error();
  if (*count == 0) return make_error(EINVAL, "{}: no edges in it", options.path);
  return EdgeListSummary{.edge_count = *count, .vertex_count = vertex_count};
}

// Turns numbers into names.
class NumberNames : public EdgeSink {
 public:
  explicit NumberNames(NameSink& names) : names_(names) {}

  Outcome<void> take(EdgeBatch& batch) override {
    const size_t edge_bytes = batch.edge_bytes();
    SerialReader::Item item;
    if (auto grown = item.names.reserve(batch.edge_count * SerialReader::kNamesBytesMax); !grown) {
      return grown;
    }
    const char* record = batch.records.data();
    for (size_t i = 0; i < batch.edge_count; ++i, record += edge_bytes) {
      Edge edge;
      std::memcpy(&edge, record, sizeof edge);
      SerialReader::put_names(item, edge, record + sizeof edge, edge_bytes - sizeof edge);
    }
    return names_.take_names(item.names.data(), item.names_bytes, batch.edge_count);
  }

 private:
  NameSink& names_;
};

// The reader of one format of stored graphs.
using StoredReader = ReadResult (*)(const EdgeListOptions& options, EdgeSink& sink);

ReadResult read_stored_edges(const EdgeListOptions& options, const EdgeTarget& target,
                             StoredReader read) {
  if (target.numbers != nullptr) return read(options, *target.numbers);
  NumberNames names(*target.names);
  return read(options, names);
}

}  // namespace

ReadResult read_graph_directory(const EdgeListOptions& options, const EdgeTarget& target) {
  const std::string& dir = options.path;
  EdgeFormat found = EdgeFormat::kAuto;
  if (has_file(dir, "meta") && has_file(dir, "row")) found = EdgeFormat::kGrid;
  if (has_file(dir, "indptr.npy") && has_file(dir, "indices.npy")) found = EdgeFormat::kCsr;
  if (is_stored_graph(dir)) {
    const Outcome<GraphHeader> header = read_graph_header(dir);
    if (!header) return header.error();
    found = header->kind == GraphKind::kPages  ? EdgeFormat::kPages
            : header->kind == GraphKind::kDual ? EdgeFormat::kDual
                                               : EdgeFormat::kLists;
  }
  if (found == EdgeFormat::kAuto && find_shards(dir)) found = EdgeFormat::kShards;
  if (found == EdgeFormat::kAuto) {
    return make_error(EISDIR,
                      "{}: is a directory, and none that is read: a grid, CSR, GraphChi's shards, "
                      "lists, dual, pages",
                      dir);
  }
  if (options.format != EdgeFormat::kAuto && options.format != found) {
    return make_error(EISDIR, "{}: is a directory of format {}: --from {} reads it", dir,
                      name_of(found), name_of(found));
  }
  switch (found) {
    case EdgeFormat::kGrid: return read_grid_edges(options, target);
    case EdgeFormat::kCsr: return read_csr_edges(options, target);
    case EdgeFormat::kLists: return read_stored_edges(options, target, read_lists);
    case EdgeFormat::kDual: return read_stored_edges(options, target, read_dual);
    case EdgeFormat::kPages: return read_stored_edges(options, target, read_pages);
    default: return read_shard_edges(options, target);
  }
}

}  // namespace graphlane::graphfmt
