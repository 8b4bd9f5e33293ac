#include "graphfmt/lists/lists_read.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "graphfmt/list_edges.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kScanArcsMax = uint64_t{256} << 10;
constexpr uint64_t kScanBytesAnArc = 32;  // encoded, decoded, its weight and its edge

// A file of a direction, read by whole pieces.
class PieceFile {
 public:
  static Outcome<PieceFile> open(const Lists& lists, Direction direction, ListPart part) {
    auto file = lists.directory().open_file(lists.file_name(direction, part));
    if (!file) return file.error();
    PieceFile pieces{lists, direction, part};
    pieces.file_ = std::move(*file);
    return pieces;
  }

  // The range, checked; it begins at the pointer, in `buffer`.
  Outcome<const uint8_t*> read(uint64_t begin, uint64_t end, Buffer& buffer) const {
    if (begin == end) return static_cast<const uint8_t*>(nullptr);
    const uint64_t unit = lists_->piece_bytes();
    const uint64_t first = begin / unit * unit;
    const uint64_t last = std::min(round_up(end, unit), file_.size_bytes());
    if (auto grown = buffer.reserve(last - first); !grown) return grown.error();
    if (auto done = file_.read({first, last - first}, buffer.data()); !done) return done.error();
    for (uint64_t at = first; at < last; at += unit) {
      const std::span<const uint8_t> piece(buffer.as<uint8_t>() + (at - first),
                                           std::min(unit, last - at));
      if (auto sound = lists_->check_piece(direction_, part_, at / unit, piece); !sound) {
        return sound.error();
      }
    }
    return buffer.as<const uint8_t>() + (begin - first);
  }

  const std::string& path() const { return file_.path(); }

 private:
  PieceFile(const Lists& lists, Direction direction, ListPart part)
      : lists_(&lists), direction_(direction), part_(part) {}

  const Lists* lists_;
  Direction direction_;
  ListPart part_;
  OpenGraphFile file_;
};

class ListScan {
 public:
  ListScan(const Lists& lists, Direction direction, const ScanOptions& options, ListSink& sink)
      : lists_(lists),
        index_(lists.index(direction)),
        direction_(direction),
        options_(options),
        sink_(sink) {}

  Outcome<void> run() {
    auto file = PieceFile::open(lists_, direction_, ListPart::kLists);
    if (!file) return file.error();
    lists_file_.emplace(std::move(*file));
    if (options_.with_weights && lists_.is_weighted()) {
      auto weights = PieceFile::open(lists_, direction_, ListPart::kWeights);
      if (!weights) return weights.error();
      weights_file_.emplace(std::move(*weights));
    }
    const unsigned threads = usable_threads(options_.threads);
    arcs_max_ = std::clamp(options_.memory_budget_bytes / threads / kScanBytesAnArc, uint64_t{1},
                           kScanArcsMax);
    Progress progress(options_.label, index_.arc_count(), false);
    Line<ScanItem> line;
    line.load = [this](ScanItem& item) -> Outcome<bool> { return load(item); };
    line.work = [this](ScanItem& item) -> Outcome<void> {
      auto done = decode(item);
      return done ? sink_.prepare(item.batch) : done;
    };
    line.unload = [&](ScanItem& item) {
      progress.add(item.batch.neighbours.size());
      return sink_.take(item.batch);
    };
    line.settle = [this](ScanItem& item) { return sink_.settle(item.batch); };
    return line.run(threads);
  }

 private:
  struct ScanItem {
    uint64_t first = 0;  // vertices [first, end)
    uint64_t end = 0;
    Buffer lists;
    Buffer weights;
    ListBatch batch;
  };

  bool load(ScanItem& item) {
    item.first = next_;
    uint64_t arcs = 0;
    while ((next_ = index_.next_candidate(next_)) < index_.vertex_count()) {
      const uint64_t degree = index_.degree(static_cast<uint32_t>(next_));
      if (next_ > item.first && arcs + degree > arcs_max_) break;
      arcs += degree;
      ++next_;
    }
    item.end = next_;
    return item.first < item.end;
  }

  Outcome<void> decode(ScanItem& item) const {
    ListBatch& batch = item.batch;
    batch.vertices.clear();
    batch.starts.assign(1, 0);
    batch.lengths.clear();
    const uint64_t begin = index_.offset(item.first);
    const uint64_t end = index_.offset(item.end);
    index_.scan(item.first, item.end,
                [&](uint32_t vertex, const ListPlace& place, uint64_t degree) {
                  batch.vertices.push_back(vertex);
                  batch.lengths.push_back(place.length_bytes);
                  batch.starts.push_back(batch.starts.back() + degree);
                });
    const auto bytes = lists_file_->read(begin, end, item.lists);
    if (!bytes) return bytes.error();
    batch.neighbours.resize(batch.starts.back());
    const ListCodec& codec = lists_.codec();
    const uint8_t* from = *bytes;
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      const size_t length = batch.lengths[i];
      const std::span<uint32_t> list(batch.neighbours.data() + batch.starts[i],
                                     batch.starts[i + 1] - batch.starts[i]);
      const size_t behind = end - begin - static_cast<size_t>(from + length - *bytes);
      const bool sound =
          codec.decode({from, length}, list, lists_.vertex_count(), behind) &&
          (codec.kind() != CodecKind::kRaw || std::is_sorted(list.begin(), list.end()));
      if (!sound) {
        return make_error(EIO, "{}: byte {}: the list of vertex {} is damaged", lists_file_->path(),
                          begin + static_cast<uint64_t>(from - *bytes), batch.vertices[i]);
      }
      from += length;
    }
    batch.weights.clear();
    if (!weights_file_) return {};
    const WeightTable& table = lists_.weights(direction_);
    const uint64_t first_arc = index_.first_arc(item.first);
    const uint64_t end_arc = index_.first_arc(item.end);
    const ByteRange range = table.range(first_arc, end_arc - first_arc);
    const auto codes = weights_file_->read(range.offset, range.end(), item.weights);
    if (!codes) return codes.error();
    batch.weights.resize((end_arc - first_arc) * weight_bytes(lists_.header().weight));
    if (!table.decode_stored(first_arc, end_arc - first_arc, batch.weights.data(), *codes)) {
      return make_error(EIO, "{}: byte {}: weights that no encoder writes", weights_file_->path(),
                        range.offset);
    }
    return {};
  }

  const Lists& lists_;
  const ListIndex& index_;
  const Direction direction_;
  const ScanOptions& options_;
  ListSink& sink_;
  std::optional<PieceFile> lists_file_;
  std::optional<PieceFile> weights_file_;
  uint64_t arcs_max_ = 0;
  uint64_t next_ = 0;  // load only: one thread at a time
};

}  // namespace

Outcome<void> scan_lists(const Lists& lists, Direction direction, const ScanOptions& options,
                         ListSink& sink) {
  return or_no_memory([&] { return ListScan(lists, direction, options, sink).run(); });
}

Outcome<EdgeListSummary> read_lists(const EdgeListOptions& options, EdgeSink& sink) {
  const auto lists = Lists::open(options.path);
  if (!lists) return lists.error();
  const GraphHeader& header = (*lists)->header();
  if (auto suits = check_stored_edges(header, options); !suits) return suits.error();
  EdgesOfLists edges(header.is_directed, options, sink);
  const ScanOptions scan{.label = "read " + options.path,
                         .with_weights = options.weighted,
                         .memory_budget_bytes = options.memory_budget_bytes,
                         .threads = options.threads};
  if (auto done = scan_lists(**lists, Direction::kOut, scan, edges); !done) return done.error();
  if (edges.edge_count() != header.edge_count) {
    return make_error(EIO, "{}: byte 56: {} edges, but its lists have {}",
                      (*lists)->directory().path_of(kGraphHeaderFile), header.edge_count,
                      edges.edge_count());
  }
  return EdgeListSummary{.edge_count = header.edge_count, .vertex_count = header.vertex_count};
}

Outcome<GraphHeader> check_lists(const std::string& path, unsigned threads) {
  const auto lists = Lists::open(path);
  if (!lists) return lists.error();
  const GraphHeader& header = (*lists)->header();
  const ScanOptions scan{.label = "check " + path, .threads = threads};
  ArcSum out(/*by_target=*/false, weight_bytes(header.weight));
  if (auto done = scan_lists(**lists, Direction::kOut, scan, out); !done) return done.error();
  if (!header.is_directed) {
    if (out.is_symmetric()) return header;
    return make_error(EIO, "{}: undirected, but not every edge is in both ends' lists", path);
  }
  ArcSum in(/*by_target=*/true, weight_bytes(header.weight));
  if (auto done = scan_lists(**lists, Direction::kIn, scan, in); !done) return done.error();
  if (in.all() != out.all()) {
    return make_error(EIO, "{}: the lists of its two directions hold different arcs", path);
  }
  return header;
}

}  // namespace graphlane::graphfmt
