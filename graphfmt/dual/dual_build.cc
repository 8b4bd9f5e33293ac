#include "graphfmt/dual/dual_build.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "graphfmt/codec/weight_codec.h"
#include "graphfmt/dual/dual_row.h"
#include "graphfmt/output/out_file.h"
#include "graphfmt/piece_checksums.h"

namespace graphlane::graphfmt {
namespace {

// A file that is written from its begin to its end.
class DualFile {
 public:
  Outcome<void> open(const std::string& path) {
    auto file = OutFile::create(path);
    if (!file) return file.error();
    file_ = std::move(*file);
    return {};
  }
  Outcome<void> append(const void* data, size_t length_bytes) {
    checksums_.append(data, length_bytes);
    return file_.write(data, length_bytes, std::exchange(size_bytes_, size_bytes_ + length_bytes));
  }
  Outcome<void> close() { return file_.close(); }

  uint64_t size_bytes() const { return size_bytes_; }
  const PieceChecksums& checksums() const { return checksums_; }

 private:
  OutFile file_;
  uint64_t size_bytes_ = 0;
  PieceChecksums checksums_{kChecksumPieceBytes};
};

// Writes the degrees of ascending vertices to a file.
class DegreeWriter {
 public:
  void append(uint32_t vertex, uint64_t degree) {
    column_.append_zeros(vertex - column_.count());
    column_.append(degree);
  }
  Outcome<void> write(const std::string& dir, uint64_t vertex_count, GraphHeader& header) {
    column_.append_zeros(vertex_count - column_.count());
    DualFile file;
    if (auto opened = file.open(dir + "/" + kDualDegreesFile); !opened) return opened;
    uint32_t checksum = 0;
    const auto append = [&](const void* data, size_t length) {
      checksum = crc32c_extend(checksum, data, length);
      return file.append(data, length);
    };
    if (auto written = column_.write(append); !written) return written;
    header.files.push_back({kDualDegreesFile, file.size_bytes(), checksum});
    return file.close();
  }

 private:
  ByteColumnBuilder column_{false};
};

// The lists of one group of vertices in one block.
struct PendingGroup {
  std::vector<uint32_t> vertices;
  std::vector<size_t> ends;  // of their lists in `neighbours`
  std::vector<uint32_t> neighbours;

  size_t encode(const ListCodec& codec, uint8_t* bytes) const {
    std::vector<VertexList> lists;
    for (size_t i = 0; i < vertices.size(); ++i) {
      const size_t begin = i == 0 ? 0 : ends[i - 1];
      lists.push_back({vertices[i], {neighbours.data() + begin, ends[i] - begin}});
    }
    return codec.encode_group(lists, bytes);
  }
};

// The files of one side. A batch's `lengths` hold what prepare() leaves for take(): for each vertex
// how many blocks its list is in; and of each of those the block, the neighbours and the bytes.
//
// With groups, lists have no bytes of their own. Before the first vertex of each group stands how
// many blocks the group is in, and of each of those the block, the bytes and the neighbours. The groups at both
// ends of a batch may go on in other batches: prepare() leaves their lists as they are, and take()
// puts them together.
class DualWriter : public ListSink {
 public:
  DualWriter(const std::string& dir, DualSide side, CodecKind codec, WeightKind weight,
             const DualGeometry& geometry, uint64_t row_bytes)
      : dir_(dir),
        side_(side),
        codec_(ListCodec::of(codec)),
        weight_bytes_(weight_bytes(weight)),
        geometry_(geometry),
        weight_writer_(weight),
        row_(dual_index_shape(codec, weight_bytes_ > 0), geometry.partitions(), dir + "/row",
             row_bytes) {}

  Outcome<void> open() {
    if (auto opened = blocks_.open(dir_ + "/" + dual_file_name(side_, DualPart::kBlocks));
        !opened) {
      return opened;
    }
    if (weight_bytes_ == 0) return {};
    return weights_.open(dir_ + "/" + dual_file_name(side_, DualPart::kWeights));
  }

  Outcome<void> prepare(ListBatch& batch) override {
    // The bound of each list may be more than that of all together.
    const size_t lists_max =
        std::min(batch.neighbours.size(), batch.vertices.size() * geometry_.partitions());
    if (auto grown = batch.encoded.reserve(codec_.bytes_max(batch.neighbours.size()) +
                                           lists_max * codec_.bytes_max(0) + lists_max);
        !grown) {
      return grown;
    }
    batch.lengths.clear();
    batch.tally = 0;
    if (has_groups()) {
      prepare_groups(batch);
      return {};
    }
    uint8_t* to = batch.encoded.as<uint8_t>();
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      const size_t count_at = batch.lengths.size();
      batch.lengths.push_back(0);
      cut_list(batch, i, [&](uint32_t other, std::span<const uint32_t> list) {
        const size_t length = codec_.encode(list, to);
        to += length;
        batch.lengths.insert(batch.lengths.end(), {other, list.size(), length});
        ++batch.lengths[count_at];
      });
    }
    return {};
  }

  Outcome<void> take(ListBatch& batch) override {
    const uint64_t* about = batch.lengths.data();
    const uint8_t* list = batch.encoded.as<uint8_t>();
    const uint8_t* weights = batch.weights.data();
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      const uint32_t vertex = batch.vertices[i];
      if (const uint32_t own = geometry_.interval_of(vertex); own != own_) {
        if (auto ended = end_rows(own); !ended) return ended;
      }
      const uint32_t* neighbours = batch.neighbours.data() + batch.starts[i];
      const bool is_pending = has_groups() && is_at_end(batch, i);
      if (has_groups() && begins_group(batch, i)) {
        if (i > 0 || group_of(vertex) != pending_group_) {
          if (auto ended = end_pending(); !ended) return ended;
          pending_group_ = group_of(vertex);
        }
        for (uint64_t left = *about++; left > 0; --left, about += 3) {
          row_.append_group(static_cast<uint32_t>(about[0]), {list, about[1]}, about[2]);
          list += about[1];
        }
      }
      const auto place = static_cast<uint32_t>(vertex - geometry_.first(own_));
      uint64_t degree = 0;
      for (uint64_t left = *about++; left > 0; --left, about += 3) {
        const std::span<const uint8_t> list_bytes(list, about[2]);
        const std::span<const uint8_t> weight_bytes(weights, about[1] * weight_bytes_);
        row_.append(static_cast<uint32_t>(about[0]), place, about[1], list_bytes, weight_bytes);
        if (is_pending) add_pending(static_cast<uint32_t>(about[0]), place, {neighbours, about[1]});
        neighbours += about[1];
        list += list_bytes.size();
        weights += weight_bytes.size();
        degree += about[1];
      }
      arcs_.all += degree;
      if (side_ == DualSide::kOut) degrees_.append(vertex, degree);
    }
    arcs_.single += batch.tally;
    return row_.keep_limit();
  }

  // After the last batch: adds to the table, and to the header's files.
  Outcome<void> finish(std::string& table, GraphHeader& header) {
    if (auto ended = end_rows(geometry_.partitions()); !ended) return ended;
    table.append(reinterpret_cast<const char*>(sizes_.data()),
                 sizes_.size() * sizeof(DualBlockSizes));
    for (const DualPart part : {DualPart::kBlocks, DualPart::kWeights}) {
      if (part == DualPart::kWeights) {
        if (weight_bytes_ == 0) break;
        if (auto written = end_weights(table, header); !written) return written;
      }
      DualFile& file = part == DualPart::kBlocks ? blocks_ : weights_;
      if (auto closed = file.close(); !closed) return closed;
      const std::vector<uint32_t>& all = file.checksums().all();
      table.append(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(uint32_t));
      table.append(all.size() % 2 * sizeof(uint32_t), '\0');
      header.files.push_back(
          {dual_file_name(side_, part), file.size_bytes(), file.checksums().checksum()});
    }
    return side_ == DualSide::kOut ? degrees_.write(dir_, geometry_.vertex_count(), header)
                                   : Outcome<void>();
  }

  const SideArcs& arcs() const { return arcs_; }
  uint64_t lists_bytes() const { return lists_bytes_; }
  uint64_t index_bytes() const { return index_bytes_; }

 private:
  bool has_groups() const { return codec_.group_vertices() > 1; }
  // Groups of all intervals have different numbers.
  uint64_t group_of(uint32_t vertex) const {
    const uint32_t own = geometry_.interval_of(vertex);
    return own * geometry_.width() + (vertex - geometry_.first(own)) / codec_.group_vertices();
  }
  bool begins_group(const ListBatch& batch, size_t i) const {
    return i == 0 || group_of(batch.vertices[i]) != group_of(batch.vertices[i - 1]);
  }
  // Whether the vertex's group may go on in another batch.
  bool is_at_end(const ListBatch& batch, size_t i) const {
    const uint64_t group = group_of(batch.vertices[i]);
    return group == group_of(batch.vertices.front()) || group == group_of(batch.vertices.back());
  }

  // each(other, list) for the parts of a list that lie in one block. From then on neighbours count
  // from the beginnings of their intervals.
  template <class Each>
  void cut_list(ListBatch& batch, size_t i, const Each& each) const {
    uint32_t* at = batch.neighbours.data() + batch.starts[i];
    uint32_t* const end = batch.neighbours.data() + batch.starts[i + 1];
    batch.tally += static_cast<uint64_t>(end - std::lower_bound(at, end, batch.vertices[i]));
    while (at != end) {
      const uint32_t other = geometry_.interval_of(*at);
      const uint64_t other_end = geometry_.first(other + 1);
      const auto first = static_cast<uint32_t>(geometry_.first(other));
      uint32_t* const begin = at;
      for (; at != end && *at < other_end; ++at) *at -= first;
      each(other, std::span<const uint32_t>(begin, at));
    }
  }

  void prepare_groups(ListBatch& batch) const {
    uint8_t* to = batch.encoded.as<uint8_t>();
    std::vector<std::pair<uint32_t, VertexList>> parts;  // of a group, with their blocks
    std::vector<uint64_t> about;
    std::vector<VertexList> lists;
    for (size_t i = 0, end = 0; i < batch.vertices.size(); i = end) {
      parts.clear();
      about.clear();
      for (end = i; end < batch.vertices.size() && (end == i || !begins_group(batch, end)); ++end) {
        const uint32_t vertex = batch.vertices[end];
        const auto place =
            static_cast<uint32_t>(vertex - geometry_.first(geometry_.interval_of(vertex)));
        const size_t count_at = about.size();
        about.push_back(0);
        cut_list(batch, end, [&](uint32_t other, std::span<const uint32_t> list) {
          parts.push_back({other, {place, list}});
          about.insert(about.end(), {other, list.size(), 0});
          ++about[count_at];
        });
      }
      const size_t count_at = batch.lengths.size();
      batch.lengths.push_back(0);
      if (!is_at_end(batch, i)) {
        std::stable_sort(parts.begin(), parts.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (size_t part = 0; part < parts.size();) {
          const uint32_t other = parts[part].first;
          uint64_t arcs = 0;
          lists.clear();
          for (; part < parts.size() && parts[part].first == other; ++part) {
            lists.push_back(parts[part].second);
            arcs += lists.back().list.size();
          }
          const size_t length = codec_.encode_group(lists, to);
          to += length;
          batch.lengths.insert(batch.lengths.end(), {other, length, arcs});
          ++batch.lengths[count_at];
        }
      }
      batch.lengths.insert(batch.lengths.end(), about.begin(), about.end());
    }
  }

  void add_pending(uint32_t other, uint32_t vertex, std::span<const uint32_t> list) {
    PendingGroup& group = pending_[other];
    group.vertices.push_back(vertex);
    group.neighbours.insert(group.neighbours.end(), list.begin(), list.end());
    group.ends.push_back(group.neighbours.size());
  }
  Outcome<void> end_pending() {
    for (auto& [other, group] : pending_) {
      const size_t bytes_max =
          codec_.bytes_max(group.neighbours.size()) + group.vertices.size() * codec_.bytes_max(0);
      if (auto grown = pending_bytes_.reserve(bytes_max); !grown) return grown;
      const size_t length = group.encode(codec_, pending_bytes_.as<uint8_t>());
      row_.append_group(other, {pending_bytes_.as<uint8_t>(), length}, group.neighbours.size());
    }
    pending_.clear();
    return {};
  }

  // Writes the row, and empty ones up to `next`.
  Outcome<void> end_rows(uint32_t next) {
    if (auto ended = end_pending(); !ended) return ended;
    for (uint32_t other = 0; other < geometry_.partitions(); ++other) {
      if (auto ended = end_block(row_.block(other)); !ended) return ended;
    }
    row_.clear();
    sizes_.resize(uint64_t{next} * geometry_.partitions());
    own_ = next;
    return {};
  }

  Outcome<void> end_weights(std::string& table, GraphHeader& header) {
    weight_codes_.clear();
    weight_writer_.finish(weight_codes_);
    if (auto written = weights_.append(weight_codes_.data(), weight_codes_.size()); !written) {
      return written;
    }
    const std::vector<uint8_t> of_weights = weight_writer_.table();
    table.append(reinterpret_cast<const char*>(of_weights.data()), of_weights.size());
    header.weights_bytes += weight_writer_.bytes();
    return {};
  }

  Outcome<void> end_block(DualRow::Block& block) {
    const auto to_blocks = [&](const void* data, size_t length) {
      return blocks_.append(data, length);
    };
    DualBlockSizes sizes{.index_bytes = 0,
                         .lists_bytes = block.index.lists_bytes(),
                         .arc_count = block.index.arc_count()};
    if (sizes.arc_count > 0) {
      block.index.finish(geometry_.size(own_));
      sizes.index_bytes = block.index.size_bytes();
      if (auto written = block.index.write(to_blocks); !written) return written;
      if (auto written = block.lists.drain(row_.spill_file(), to_blocks); !written) return written;
      const uint64_t zeros = 0;
      if (auto written = to_blocks(&zeros, round_up(sizes.lists_bytes, 8) - sizes.lists_bytes);
          !written) {
        return written;
      }
      const auto to_weights = [&](const void* data, size_t length) {
        weight_codes_.clear();
        weight_writer_.append({static_cast<const uint8_t*>(data), length}, weight_codes_);
        return weights_.append(weight_codes_.data(), weight_codes_.size());
      };
      if (weight_bytes_ > 0) {
        if (auto written = block.weights.drain(row_.spill_file(), to_weights); !written) {
          return written;
        }
      }
    }
    index_bytes_ += sizes.index_bytes;
    lists_bytes_ += sizes.lists_bytes;
    sizes_.push_back(sizes);
    return {};
  }

  const std::string dir_;
  const DualSide side_;
  const ListCodec& codec_;
  const size_t weight_bytes_;
  const DualGeometry geometry_;
  // take() only: one thread at a time.
  DualFile blocks_;
  DualFile weights_;
  WeightWriter weight_writer_;
  std::vector<uint8_t> weight_codes_;
  DualRow row_;
  DegreeWriter degrees_;
  std::map<uint32_t, PendingGroup> pending_;  // by block
  uint64_t pending_group_ = ~uint64_t{0};
  Buffer pending_bytes_;
  uint32_t own_ = 0;
  std::vector<DualBlockSizes> sizes_;
  SideArcs arcs_;
  uint64_t lists_bytes_ = 0;
  uint64_t index_bytes_ = 0;
};

class DualFormat final : public StoredGraphFormat {
 public:
  explicit DualFormat(const DualOptions& options) : options_(options) {}

  void begin(uint64_t input_edge_count, GraphHeader& header) override {
    header.kind = GraphKind::kDual;
    header.partitions = options_.partitions;
    if (header.partitions == 0) {
      header.partitions = dual_partitions(header.vertex_count, input_edge_count,
                                          options_.input.memory_budget_bytes);
    }
    partitions_ = header.partitions;
  }

  Outcome<SideArcs> write_side(Direction direction, const Merge& merge, const std::string& dir,
                               GraphHeader& header) override {
    const DualSide side = direction == Direction::kOut ? DualSide::kOut : DualSide::kIn;
    DualWriter writer(dir, side, options_.codec, header.weight,
                      {header.vertex_count, header.partitions},
                      options_.input.memory_budget_bytes / 8);
    if (auto opened = writer.open(); !opened) return opened.error();
    if (auto merged = merge(writer); !merged) return merged.error();
    if (auto finished = writer.finish(table_, header); !finished) return finished.error();
    lists_bytes_ += writer.lists_bytes();
    index_bytes_ += writer.index_bytes();
    return writer.arcs();
  }

  Outcome<void> end(const std::string& dir, GraphHeader& header) override {
    header.files.push_back(
        {kDualTableFile, table_.size(), crc32c_extend(0, table_.data(), table_.size())});
    return write_new_file(dir + "/" + kDualTableFile, table_.data(), table_.size());
  }

  uint32_t partitions() const { return partitions_; }
  uint64_t lists_bytes() const { return lists_bytes_; }
  uint64_t index_bytes() const { return index_bytes_; }

 private:
  const DualOptions& options_;
  std::string table_;
  uint32_t partitions_ = 0;
  uint64_t lists_bytes_ = 0;
  uint64_t index_bytes_ = 0;
};

}  // namespace

uint32_t dual_partitions(uint64_t vertex_count, uint64_t arc_count, uint64_t budget_bytes) {
  constexpr uint64_t kValueBytes = 16;  // of a vertex, both copies
  const auto quarter = static_cast<double>(std::max<uint64_t>(budget_bytes / 4, 1));
  const double for_values = 2.0 * kValueBytes * static_cast<double>(vertex_count) / quarter;
  const double for_lists = std::sqrt(sizeof(uint32_t) * static_cast<double>(arc_count) / quarter);
  return static_cast<uint32_t>(
      std::clamp<double>(std::ceil(for_values + for_lists), 1, kDualPartitionsMax));
}

Outcome<DualSummary> build_dual(const DualOptions& options) {
  if (options.partitions > kDualPartitionsMax) {
    return make_error(EINVAL, "{} intervals: at most {}", options.partitions, kDualPartitionsMax);
  }
  DualFormat format(options);
  auto built = build_stored_graph(
      {options.input, options.output, options.codec, options.overwrite, options.run_edges}, format);
  if (!built) return built.error();
  return DualSummary{std::move(*built), format.partitions(), format.lists_bytes(),
                     format.index_bytes()};
}

}  // namespace graphlane::graphfmt
