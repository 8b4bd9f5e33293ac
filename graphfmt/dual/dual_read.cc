#include "graphfmt/dual/dual_read.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "graphfmt/list_edges.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/process/progress.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kStripBytesMax = uint64_t{512} << 10;
// for each encoded byte: decoded, its weight and its edge
constexpr uint64_t kStripBytesABudget = 40;

// A file of a side, read by whole pieces.
class DualPieces {
 public:
  static Outcome<DualPieces> open(const Dual& dual, DualSide side, DualPart part) {
    auto file = dual.directory().open_file(dual.file_name(side, part));
    if (!file) return file.error();
    DualPieces pieces(dual, side, part);
    pieces.file_ = std::move(*file);
    return pieces;
  }

  // The range, checked; it begins at the pointer, in `buffer`.
  Outcome<const uint8_t*> read(ByteRange range, Buffer& buffer) const {
    if (range.length_bytes == 0) return static_cast<const uint8_t*>(nullptr);
    const uint64_t unit = dual_->piece_bytes();
    const uint64_t first = range.offset / unit * unit;
    const uint64_t last = std::min(round_up(range.end(), unit), file_.size_bytes());
    if (auto grown = buffer.reserve(last - first); !grown) return grown.error();
    if (auto done = file_.read({first, last - first}, buffer.data()); !done) return done.error();
    for (uint64_t at = first; at < last; at += unit) {
      const std::span<const uint8_t> piece(buffer.as<uint8_t>() + (at - first),
                                           std::min(unit, last - at));
      if (dual_->is_sound_piece(side_, part_, at / unit, piece)) continue;
      return make_error(EIO,
                        "{}: byte {}: the checksum of these {} bytes is wrong: they are damaged",
                        file_.path(), at, piece.size());
    }
    return buffer.as<const uint8_t>() + (range.offset - first);
  }

  const std::string& path() const { return file_.path(); }

 private:
  DualPieces(const Dual& dual, DualSide side, DualPart part)
      : dual_(&dual), side_(side), part_(part) {}

  const Dual* dual_;
  DualSide side_;
  DualPart part_;
  OpenGraphFile file_;
};

// The indexes of a row of blocks.
struct RowIndexes {
  uint32_t own = 0;
  std::vector<std::vector<uint64_t>> bytes;
  std::vector<std::optional<ListIndex>> indexes;  // empty: a block without arcs
};

// Compares a side's lists with the degrees.
class DegreeCheck : public ArcSum {
 public:
  DegreeCheck(size_t weight_bytes, std::span<const uint32_t> degrees)
      : ArcSum(/*by_target=*/false, weight_bytes), degrees_(degrees) {}
  Outcome<void> take(ListBatch& batch) override {
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      are_equal_ &= degrees_[batch.vertices[i]] == batch.list(i).size();
    }
    return ArcSum::take(batch);
  }
  bool are_equal() const { return are_equal_; }

 private:
  const std::span<const uint32_t> degrees_;
  bool are_equal_ = true;
};

// A strip is a range of vertices of an interval: their lists are read from all blocks of the row.
class DualScan {
 public:
  DualScan(const Dual& dual, DualSide side, const DualScanOptions& options, ListSink& sink)
      : dual_(dual),
        side_(side),
        options_(options),
        sink_(sink),
        partitions_(dual.geometry().partitions()),
        rows_end_(std::min(partitions_, options.first_row + options.row_count)) {}

  Outcome<void> run() {
    auto blocks = DualPieces::open(dual_, side_, DualPart::kBlocks);
    if (!blocks) return blocks.error();
    blocks_.emplace(std::move(*blocks));
    if (options_.with_weights && dual_.is_weighted()) {
      auto weights = DualPieces::open(dual_, side_, DualPart::kWeights);
      if (!weights) return weights.error();
      weights_.emplace(std::move(*weights));
    }
    const unsigned threads = usable_threads(options_.threads);
    strip_bytes_ = std::clamp(options_.memory_budget_bytes / threads / kStripBytesABudget,
                              uint64_t{1}, kStripBytesMax);
    Progress progress(options_.label, dual_.header().arc_count, false);
    Line<Strip> line;
    line.load = [this](Strip& strip) { return load(strip); };
    line.work = [this](Strip& strip) -> Outcome<void> {
      auto done = decode(strip);
      return done ? sink_.prepare(strip.batch) : done;
    };
    line.unload = [&](Strip& strip) {
      progress.add(strip.batch.neighbours.size());
      return sink_.take(strip.batch);
    };
    line.settle = [this](Strip& strip) { return sink_.settle(strip.batch); };
    return line.run(threads);
  }

 private:
  // The lists of one block, decoded.
  struct Part {
    std::vector<uint32_t> vertices;
    std::vector<uint32_t> degrees;
    std::vector<uint32_t> neighbours;
    std::vector<uint8_t> weights;  // as in memory
  };
  struct Strip {
    std::shared_ptr<const RowIndexes> row;
    uint64_t first = 0;  // vertices [first, end) of the row's interval
    uint64_t end = 0;
    Buffer bytes;
    std::vector<Part> parts;
    ListBatch batch;
  };

  uint64_t bytes_before(uint64_t vertex) const {
    uint64_t sum = 0;
    for (const auto& index : row_->indexes) sum += index ? index->offset(vertex) : 0;
    return sum;
  }

  Outcome<bool> load(Strip& strip) {
    const DualGeometry& geometry = dual_.geometry();
    while (row_ == nullptr || next_ == geometry.size(row_->own)) {
      const uint32_t own = row_ == nullptr ? options_.first_row : row_->own + 1;
      if (own >= rows_end_) return false;
      if (auto loaded = load_row(own); !loaded) return loaded.error();
      next_ = 0;
    }
    strip.row = row_;
    strip.first = next_;
    // As many vertices as fit by the bytes of their lists; at least one.
    const uint64_t limit = bytes_before(next_) + strip_bytes_;
    uint64_t low = next_ + 1, high = geometry.size(row_->own) + 1;
    while (high - low > 1) {
      const uint64_t middle = (low + high) / 2;
      (bytes_before(middle) <= limit ? low : high) = middle;
    }
    next_ = strip.end =
        whole_groups_end(next_, low, geometry.size(row_->own), dual_.codec().group_vertices());
    return true;
  }

  Outcome<void> load_row(uint32_t own) {
    auto row = std::make_shared<RowIndexes>();
    row->own = own;
    row->bytes.resize(partitions_);
    row->indexes.resize(partitions_);
    for (uint32_t other = 0; other < partitions_; ++other) {
      const DualBlock& block = dual_.block(side_, own, other);
      if (block.arc_count == 0) continue;
      const auto bytes = blocks_->read(block.index, index_bytes_);
      if (!bytes) return bytes.error();
      row->bytes[other].resize(block.index.length_bytes / sizeof(uint64_t));
      std::memcpy(row->bytes[other].data(), *bytes, block.index.length_bytes);
      auto index = dual_.parse_index(
          side_, own, other,
          {reinterpret_cast<const uint8_t*>(row->bytes[other].data()), block.index.length_bytes});
      if (!index) return index.error();
      row->indexes[other] = std::move(*index);
    }
    row_ = std::move(row);
    return {};
  }

  Outcome<void> decode(Strip& strip) const {
    strip.parts.resize(partitions_);
    std::vector<size_t>& starts = strip.batch.starts;
    starts.assign(strip.end - strip.first + 1, 0);
    for (uint32_t other = 0; other < partitions_; ++other) {
      Part& part = strip.parts[other];
      part.vertices.clear();
      part.degrees.clear();
      part.neighbours.clear();
      if (!strip.row->indexes[other]) continue;
      if (auto done = decode_part(strip, other); !done) return done;
      for (size_t i = 0; i < part.vertices.size(); ++i) {
        starts[part.vertices[i] - strip.first + 1] += part.degrees[i];
      }
    }
    put_together(strip);
    return {};
  }

  Outcome<void> decode_part(Strip& strip, uint32_t other) const {
    Part& part = strip.parts[other];
    const ListIndex& index = *strip.row->indexes[other];
    const DualBlock& block = dual_.block(side_, strip.row->own, other);
    const uint64_t begin = index.offset(strip.first);
    const uint64_t end = index.offset(strip.end);
    const auto bytes = blocks_->read({block.lists.offset + begin, end - begin}, strip.bytes);
    if (!bytes) return bytes.error();
    auto done = dual_.codec().group_vertices() > 1 ? decode_groups(strip, other, *bytes)
                                                   : decode_lists(strip, other, *bytes);
    if (!done || !weights_) return done;
    const WeightTable& table = dual_.weights(side_);
    const uint64_t first_arc = block.first_arc + index.first_arc(strip.first);
    const uint64_t arcs = part.neighbours.size();
    const ByteRange range = table.range(first_arc, arcs);
    const auto codes = weights_->read(range, strip.bytes);
    if (!codes) return codes.error();
    part.weights.resize(arcs * weight_bytes(dual_.header().weight));
    if (!table.decode_stored(first_arc, arcs, part.weights.data(), *codes)) {
      return make_error(EIO, "{}: byte {}: weights that no encoder writes", weights_->path(),
                        range.offset);
    }
    return {};
  }

  // `bytes`: from the list of the strip's first vertex on.
  Outcome<void> decode_lists(Strip& strip, uint32_t other, const uint8_t* bytes) const {
    Part& part = strip.parts[other];
    const ListIndex& index = *strip.row->indexes[other];
    const uint64_t begin = index.offset(strip.first), end = index.offset(strip.end);
    const ListCodec& codec = dual_.codec();
    const uint64_t limit = dual_.geometry().size(other);
    Outcome<void> done;
    index.scan(
        strip.first, strip.end, [&](uint32_t vertex, const ListPlace& place, uint64_t degree) {
          if (!done) return;
          const std::span<const uint8_t> list_bytes(bytes + (place.offset - begin),
                                                    place.length_bytes);
          const Result<size_t> count =
              index.shape().has_degrees ? Result<size_t>(degree) : codec.count(list_bytes);
          bool sound = false;
          if (count && *count > 0) {
            const size_t at = part.neighbours.size();
            part.neighbours.resize(at + *count);
            const std::span<uint32_t> list(part.neighbours.data() + at, *count);
            const size_t behind = end - place.offset - place.length_bytes;
            sound = codec.decode(list_bytes, list, limit, behind) &&
                    (codec.kind() != CodecKind::kRaw || std::is_sorted(list.begin(), list.end()));
            part.vertices.push_back(vertex);
            part.degrees.push_back(static_cast<uint32_t>(*count));
          }
          if (!sound) done = damaged_list(strip, other, place, vertex);
        });
    return done;
  }

  // As decode_lists().
  Outcome<void> decode_groups(Strip& strip, uint32_t other, const uint8_t* bytes) const {
    Part& part = strip.parts[other];
    const ListIndex& index = *strip.row->indexes[other];
    const uint64_t begin = index.offset(strip.first);
    std::vector<uint32_t> starts(1);
    const auto done =
        index.decode_groups(dual_.codec(), strip.first, strip.end, bytes,
                            dual_.geometry().size(other), part.vertices, starts, part.neighbours);
    if (!done) {
      return damaged_list(strip, other, {begin, 0},
                          part.vertices.empty() ? strip.first : part.vertices.back());
    }
    part.neighbours.resize(starts.back());
    for (size_t i = 0; i < part.vertices.size(); ++i) {
      part.degrees.push_back(starts[i + 1] - starts[i]);
      if (!std::is_sorted(part.neighbours.begin() + starts[i],
                          part.neighbours.begin() + starts[i + 1])) {
        return damaged_list(strip, other, index.place(part.vertices[i]), part.vertices[i]);
      }
    }
    return {};
  }

  Error damaged_list(const Strip& strip, uint32_t other, const ListPlace& place,
                     uint64_t vertex) const {
    return make_error(EIO, "{}: byte {}: the list of vertex {} is damaged", blocks_->path(),
                      dual_.block(side_, strip.row->own, other).lists.offset + place.offset,
                      dual_.geometry().first(strip.row->own) + vertex);
  }

  // The parts of each list, one behind the other. `starts` has the degree of each vertex behind it.
  void put_together(Strip& strip) const {
    ListBatch& batch = strip.batch;
    const DualGeometry& geometry = dual_.geometry();
    std::vector<size_t> next(batch.starts.begin(), batch.starts.end());
    for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    const size_t size = weights_ ? weight_bytes(dual_.header().weight) : 0;
    batch.vertices.clear();
    batch.neighbours.resize(next.back());
    batch.weights.resize(next.back() * size);
    batch.starts.clear();
    for (size_t i = 0; i + 1 < next.size(); ++i) {
      if (next[i] == next[i + 1]) continue;
      batch.vertices.push_back(
          static_cast<uint32_t>(geometry.first(strip.row->own) + strip.first + i));
      batch.starts.push_back(next[i]);
    }
    batch.starts.push_back(next.back());
    for (uint32_t other = 0; other < partitions_; ++other) {
      const Part& part = strip.parts[other];
      const auto first = static_cast<uint32_t>(geometry.first(other));
      size_t from = 0;
      for (size_t i = 0; i < part.vertices.size(); ++i) {
        size_t& to = next[part.vertices[i] - strip.first];
        if (size > 0) {
          std::memcpy(batch.weights.data() + to * size, part.weights.data() + from * size,
                      part.degrees[i] * size);
        }
        for (uint32_t k = 0; k < part.degrees[i]; ++k) {
          batch.neighbours[to++] = first + part.neighbours[from++];
        }
      }
    }
  }

  const Dual& dual_;
  const DualSide side_;
  const DualScanOptions& options_;
  ListSink& sink_;
  const uint32_t partitions_;
  const uint32_t rows_end_;
  std::optional<DualPieces> blocks_;
  std::optional<DualPieces> weights_;
  uint64_t strip_bytes_ = 0;
  // load() only: one thread at a time.
  std::shared_ptr<const RowIndexes> row_;
  uint64_t next_ = 0;
  Buffer index_bytes_;
};

}  // namespace

Outcome<void> scan_dual(const Dual& dual, DualSide side, const DualScanOptions& options,
                        ListSink& sink) {
  return or_no_memory([&] { return DualScan(dual, side, options, sink).run(); });
}

Outcome<EdgeListSummary> read_dual(const EdgeListOptions& options, EdgeSink& sink) {
  const auto dual = Dual::open(options.path);
  if (!dual) return dual.error();
  const GraphHeader& header = (*dual)->header();
  if (auto readable = check_stored_edges(header, options); !readable) return readable.error();
  EdgesOfLists edges(header.is_directed, options, sink);
  const DualScanOptions scan{.label = "read " + options.path,
                             .with_weights = options.weighted,
                             .memory_budget_bytes = options.memory_budget_bytes,
                             .threads = options.threads};
  if (auto done = scan_dual(**dual, DualSide::kOut, scan, edges); !done) return done.error();
  if (edges.edge_count() != header.edge_count) {
    return make_error(EIO, "{}: byte 56: {} edges, but its blocks have {}",
                      (*dual)->directory().path_of(kGraphHeaderFile), header.edge_count,
                      edges.edge_count());
  }
  return EdgeListSummary{.edge_count = header.edge_count, .vertex_count = header.vertex_count};
}

Outcome<GraphHeader> check_dual(const std::string& path, unsigned threads) {
  return or_no_memory([&]() -> Outcome<GraphHeader> {
    const auto dual = Dual::open(path);
    if (!dual) return dual.error();
    const GraphHeader& header = (*dual)->header();
    const DualScanOptions scan{.label = "check " + path, .threads = threads};
    const auto told = (*dual)->read_degrees();
    if (!told) return told.error();
    std::vector<uint32_t> degrees(header.vertex_count);
    told->copy(0, degrees);
    DegreeCheck out(weight_bytes(header.weight), degrees);
    if (auto done = scan_dual(**dual, DualSide::kOut, scan, out); !done) return done.error();
    if (out.arc_count() != header.arc_count) {
      return make_error(EIO, "{}: byte 48: {} arcs, but its blocks have {}",
                        (*dual)->directory().path_of(kGraphHeaderFile), header.arc_count,
                        out.arc_count());
    }
    if (!out.are_equal()) {
      return make_error(EIO, "{}: byte 0: not the degrees of its blocks",
                        (*dual)->directory().path_of(kDualDegreesFile));
    }
    if (!header.is_directed) {
      if (out.is_symmetric()) return header;
      return make_error(EIO, "{}: undirected, but not every edge is in both ends' lists", path);
    }
    ArcSum in(/*by_target=*/true, weight_bytes(header.weight));
    if (auto done = scan_dual(**dual, DualSide::kIn, scan, in); !done) return done.error();
    if (in.all() != out.all()) {
      return make_error(EIO, "{}: its two sides hold different arcs", path);
    }
    return header;
  });
}

}  // namespace graphlane::graphfmt
