#include "graphfmt/lists/lists_read.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "graphfmt/sort/line.h"
#include "iomgr/base/progress.h"
#include "iomgr/stripe.h"

namespace graphlane {
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
      const std::span<const uint8_t> piece(buffer.as<uint8_t>() + (at - first), std::min(unit, last - at));
      if (auto sound = lists_->check_piece(direction_, part_, at / unit, piece); !sound) return sound.error();
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
      : lists_(lists), index_(lists.index(direction)), direction_(direction), options_(options), sink_(sink) {}

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
    arcs_max_ = std::clamp(options_.memory_budget_bytes / threads / kScanBytesAnArc, uint64_t{1}, kScanArcsMax);
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
    index_.scan(item.first, item.end, [&](uint32_t vertex, const ListPlace& place, uint64_t degree) {
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
      const std::span<uint32_t> list(batch.neighbours.data() + batch.starts[i], batch.starts[i + 1] - batch.starts[i]);
      const size_t behind = end - begin - static_cast<size_t>(from + length - *bytes);
      const bool sound = codec.decode({from, length}, list, lists_.vertex_count(), behind) &&
                         (codec.kind() != CodecKind::kRaw || std::is_sorted(list.begin(), list.end()));
      if (!sound) {
        return make_error(EIO, "{}: byte {}: the list of vertex {} is damaged", lists_file_->path(),
                          begin + static_cast<uint64_t>(from - *bytes), batch.vertices[i]);
      }
      from += length;
    }
    batch.weights.clear();
    if (!weights_file_) return {};
    const size_t size = weight_bytes(lists_.header().weight);
    const uint64_t first_arc = index_.first_arc(item.first);
    const uint64_t end_arc = index_.first_arc(item.end);
    const auto weights = weights_file_->read(first_arc * size, end_arc * size, item.weights);
    if (!weights) return weights.error();
    batch.weights.assign(*weights, *weights + (end_arc - first_arc) * size);
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

// Lists to edges.
class EdgesOfLists : public ListSink {
 public:
  EdgesOfLists(const Lists& lists, const EdgeListOptions& options, EdgeSink& sink)
      : is_directed_(lists.header().is_directed),
        is_weighted_(options.weighted),
        weight_type_(options.weight_type),
        sink_(sink) {}

  // Goes on in order: a batch has to live until the EdgeSink has taken it.
  Outcome<void> take(ListBatch& batch) override {
    edges_.weighted = is_weighted_;
    edges_.weight_type = weight_type_;
    const size_t size = edges_.edge_bytes();
    const size_t weight_bytes = size - sizeof(Edge);
    if (auto grown = edges_.records.reserve(batch.neighbours.size() * size); !grown) return grown;
    char* to = edges_.records.data();
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      for (size_t arc = batch.starts[i]; arc < batch.starts[i + 1]; ++arc) {
        const Edge edge{batch.vertices[i], batch.neighbours[arc]};
        if (!is_directed_ && edge.target < edge.source) continue;
        std::memcpy(to, &edge, sizeof edge);
        if (is_weighted_) std::memcpy(to + sizeof edge, batch.weights.data() + arc * weight_bytes, weight_bytes);
        to += size;
      }
    }
    edges_.edge_count = static_cast<size_t>(to - edges_.records.data()) / size;
    edge_count_ += edges_.edge_count;
    if (auto prepared = sink_.prepare(edges_); !prepared) return prepared;
    return sink_.take(edges_);
  }

  Outcome<void> settle(ListBatch&) override { return sink_.settle(); }

  uint64_t edge_count() const { return edge_count_; }

 private:
  const bool is_directed_;
  const bool is_weighted_;
  const WeightType weight_type_;
  EdgeSink& sink_;
  EdgeBatch edges_;
  uint64_t edge_count_ = 0;
};

uint64_t mixed(uint64_t value) {
  value = (value ^ value >> 32) * 0x9e3779b97f4a7c15;
  value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9;
  return value ^ value >> 32;
}

// Adds up a number for each arc, so that the same arcs in another order have the same sum.
class ArcSum : public ListSink {
 public:
  ArcSum(Direction direction, size_t weight_bytes) : direction_(direction), weight_bytes_(weight_bytes) {}

  Outcome<void> prepare(ListBatch& batch) override {
    uint64_t all = 0, forward = 0, backward = 0;
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      for (size_t arc = batch.starts[i]; arc < batch.starts[i + 1]; ++arc) {
        uint64_t source = batch.vertices[i], target = batch.neighbours[arc];
        if (direction_ == Direction::kIn) std::swap(source, target);
        uint64_t weight = 0;
        if (weight_bytes_ > 0) std::memcpy(&weight, batch.weights.data() + arc * weight_bytes_, weight_bytes_);
        const uint64_t turn = mixed(weight + 1);
        if (source <= target) forward += mixed(source << 32 | target) * turn;
        if (source >= target) backward += mixed(target << 32 | source) * turn;
        all += mixed((source << 32 | target) + 1) * turn;
      }
    }
    batch.tally = all;
    batch.offset = forward;
    batch.first_arc = backward;
    return {};
  }

  Outcome<void> take(ListBatch& batch) override {
    all_ += batch.tally;
    forward_ += batch.offset;
    backward_ += batch.first_arc;
    return {};
  }

  uint64_t all() const { return all_; }
  // Whether every arc is there in both directions.
  bool is_symmetric() const { return forward_ == backward_; }

 private:
  const Direction direction_;
  const size_t weight_bytes_;
  uint64_t all_ = 0;
  uint64_t forward_ = 0;
  uint64_t backward_ = 0;
};

}  // namespace

Outcome<void> scan_lists(const Lists& lists, Direction direction, const ScanOptions& options, ListSink& sink) {
  return or_no_memory([&] { return ListScan(lists, direction, options, sink).run(); });
}

Outcome<EdgeListSummary> read_lists(const EdgeListOptions& options, EdgeSink& sink) {
  const auto lists = Lists::open(options.path);
  if (!lists) return lists.error();
  const GraphHeader& header = (*lists)->header();
  if (options.weighted && header.weight == WeightKind::kNone) {
    return make_error(EINVAL, "{}: its edges have no weights", options.path);
  }
  if (options.weighted && header.weight != weight_kind(true, options.weight_type)) {
    return make_error(EINVAL, "{}: its weights are {}: --weights {} keeps them", options.path, name_of(header.weight),
                      name_of(header.weight));
  }
  const uint64_t most = options.vertices != 0 ? options.vertices : options.vertex_count_max;
  if (header.vertex_count > most) {
    return make_error(EINVAL, "{}: has {} vertices, and at most {} are allowed here", options.path,
                      header.vertex_count, most);
  }
  EdgesOfLists edges(**lists, options, sink);
  const ScanOptions scan{.label = "read " + options.path,
                         .with_weights = options.weighted,
                         .memory_budget_bytes = options.memory_budget_bytes,
                         .threads = options.threads};
  if (auto done = scan_lists(**lists, Direction::kOut, scan, edges); !done) return done.error();
  if (edges.edge_count() != header.edge_count) {
    return make_error(EIO, "{}: byte 56: {} edges, but its lists have {}",
                      (*lists)->directory().path_of(kGraphHeaderFile), header.edge_count, edges.edge_count());
  }
  return EdgeListSummary{.edge_count = header.edge_count, .vertex_count = header.vertex_count};
}

Outcome<GraphHeader> check_lists(const std::string& path, unsigned threads) {
  const auto lists = Lists::open(path);
  if (!lists) return lists.error();
  const GraphHeader& header = (*lists)->header();
  const ScanOptions scan{.label = "check " + path, .threads = threads};
  ArcSum out(Direction::kOut, weight_bytes(header.weight));
  if (auto done = scan_lists(**lists, Direction::kOut, scan, out); !done) return done.error();
  if (!header.is_directed) {
    if (out.is_symmetric()) return header;
    return make_error(EIO, "{}: undirected, but not every edge is in both ends' lists", path);
  }
  ArcSum in(Direction::kIn, weight_bytes(header.weight));
  if (auto done = scan_lists(**lists, Direction::kIn, scan, in); !done) return done.error();
  if (in.all() != out.all()) return make_error(EIO, "{}: the lists of its two directions hold different arcs", path);
  return header;
}

}  // namespace graphlane
