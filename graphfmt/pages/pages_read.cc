#include "graphfmt/pages/pages_read.h"

#include <algorithm>
#include <vector>

#include "graphfmt/list_edges.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/process/progress.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kScanBytes = uint64_t{256} << 10;

class PageScan {
 public:
  PageScan(const Pages& pages, Direction direction, ListSink& sink)
      : pages_(pages),
        store_(pages.store(direction)),
        sink_(sink),
        pages_max_(std::max<uint64_t>(1, kScanBytes / store_.page_bytes())) {}

  Outcome<void> run(const std::string& label, unsigned threads) {
    Progress progress(label, store_.page_count() * store_.page_bytes());
    Line<ScanItem> line;
    line.load = [this](ScanItem& item) -> Outcome<bool> {
      item.first = std::exchange(next_, std::min(next_ + pages_max_, store_.page_count()));
      item.end = next_;
      return item.first < item.end;
    };
    line.work = [this](ScanItem& item) -> Outcome<void> {
      auto done = decode(item);
      return done ? sink_.prepare(item.batch) : done;
    };
    line.unload = [&](ScanItem& item) -> Outcome<void> {
      progress.add((item.end - item.first) * store_.page_bytes());
      if (auto follows = check_order(item); !follows) return follows;
      return sink_.take(item.batch);
    };
    line.settle = [this](ScanItem& item) { return sink_.settle(item.batch); };
    if (auto done = line.run(usable_threads(threads)); !done) return done;
    if (key_count_ == store_.key_count()) return {};
    return make_error(EIO, "{}: byte 0: {} keys, but its pages have {}", store_.path(),
                      store_.key_count(), key_count_);
  }

 private:
  struct ScanItem {
    uint64_t first = 0;  // pages [first, end)
    uint64_t end = 0;
    Buffer bytes;
    Buffer following;            // a page behind them
    std::vector<uint8_t> whole;  // a value that lies on several
    ListBatch batch;
  };

  // The keys that begin on the pages of the item.
  Outcome<void> decode(ScanItem& item) const {
    const uint64_t page_bytes = store_.page_bytes();
    const uint64_t bytes = (item.end - item.first) * page_bytes;
    if (auto grown = item.bytes.reserve(bytes); !grown) return grown;
    const ByteRange range{store_.head().page_offset(item.first), bytes};
    if (auto done = store_.file().read(range, item.bytes.data()); !done) return done;
    ListBatch& batch = item.batch;
    batch.vertices.clear();
    batch.starts.assign(1, 0);
    batch.neighbours.clear();
    batch.weights.clear();
    for (uint64_t page = item.first; page < item.end; ++page) {
      const auto view = store_.check_page(page, page_at(item, page));
      if (!view) return view.error();
      for (uint32_t i = 0; i < view->key_count(); ++i) {
        std::span<const uint8_t> value = view->value(i);
        if (view->is_continued(i)) {
          if (auto done = gather(item, page, *view, value); !done) return done;
        }
        if (auto done = add_list(item, page, view->key(i), value); !done) return done;
      }
    }
    return {};
  }

  std::span<const uint8_t> page_at(ScanItem& item, uint64_t page) const {
    return {item.bytes.as<uint8_t>() + (page - item.first) * store_.page_bytes(),
            store_.page_bytes()};
  }

  // All of the value that begins at the end of `page`, from the pages that follow.
  Outcome<void> gather(ScanItem& item, uint64_t page, const PageView& view,
                       std::span<const uint8_t>& value) const {
    item.whole.assign(value.begin(), value.end());
    uint64_t more_bytes = view.head().more_bytes;
    while (more_bytes > 0) {
      if (++page >= store_.page_count()) {
        return store_.page_error(page - 1, "its last value does not end");
      }
      std::span<const uint8_t> bytes;
      if (page < item.end) {
        bytes = page_at(item, page);
      } else {
        if (auto grown = item.following.reserve(store_.page_bytes()); !grown) return grown;
        const ByteRange range{store_.head().page_offset(page), store_.page_bytes()};
        if (auto done = store_.file().read(range, item.following.data()); !done) return done;
        bytes = {item.following.as<uint8_t>(), store_.page_bytes()};
      }
      const auto next = store_.check_page(page, bytes);
      if (!next) return next.error();
      const std::span<const uint8_t> rest = next->rest();
      const uint64_t left = next->key_count() == 0 ? next->head().more_bytes : 0;
      if (rest.size() + left != more_bytes) {
        return store_.page_error(page, "a value does not go on in it");
      }
      item.whole.insert(item.whole.end(), rest.begin(), rest.end());
      more_bytes = left;
    }
    value = item.whole;
    return {};
  }

  Outcome<void> add_list(ScanItem& item, uint64_t page, uint64_t key,
                         std::span<const uint8_t> value) const {
    ListBatch& batch = item.batch;
    if (key >= pages_.vertex_count()) {
      return store_.page_error(
          page, fmt::format("the key {}, of {} vertices", key, pages_.vertex_count()));
    }
    const Result<ListValue> parts = pages_.parse_value(value);
    const size_t begin = batch.neighbours.size();
    if (parts) batch.neighbours.resize(begin + parts->neighbour_count);
    const std::span<uint32_t> list(batch.neighbours.data() + begin,
                                   batch.neighbours.size() - begin);
    if (!parts || !pages_.decode(*parts, list) || !std::is_sorted(list.begin(), list.end())) {
      return store_.page_error(page, fmt::format("the list of vertex {} is damaged", key));
    }
    batch.vertices.push_back(static_cast<uint32_t>(key));
    batch.starts.push_back(batch.neighbours.size());
    if (pages_.is_weighted()) {
      const WeightKind weight = pages_.header().weight;
      batch.weights.resize(batch.neighbours.size() * weight_bytes(weight));
      decode_value_weights(weight, parts->weights, list.size(),
                           batch.weights.data() + begin * weight_bytes(weight));
    }
    return {};
  }

  Outcome<void> check_order(const ScanItem& item) {
    const ListBatch& batch = item.batch;
    if (batch.vertices.empty()) return {};
    if (key_count_ > 0 && batch.vertices.front() <= last_key_) {
      return store_.page_error(item.first, "its keys do not follow those before");
    }
    last_key_ = batch.vertices.back();
    key_count_ += batch.vertices.size();
    return {};
  }

  const Pages& pages_;
  const PageStore& store_;
  ListSink& sink_;
  const uint64_t pages_max_;
  uint64_t next_ = 0;      // load only: one thread at a time
  uint64_t last_key_ = 0;  // unload only
  uint64_t key_count_ = 0;
};

}  // namespace

Outcome<void> scan_pages(const Pages& pages, Direction direction, const std::string& label,
                         unsigned threads, ListSink& sink) {
  return or_no_memory([&] { return PageScan(pages, direction, sink).run(label, threads); });
}

Outcome<EdgeListSummary> read_pages(const EdgeListOptions& options, EdgeSink& sink) {
  const auto pages = Pages::open(options.path);
  if (!pages) return pages.error();
  const GraphHeader& header = (*pages)->header();
  if (auto suits = check_stored_edges(header, options); !suits) return suits.error();
  EdgesOfLists edges(header.is_directed, options, sink);
  if (auto done =
          scan_pages(**pages, Direction::kOut, "read " + options.path, options.threads, edges);
      !done) {
    return done.error();
  }
  if (edges.edge_count() != header.edge_count) {
    return make_error(EIO, "{}/{}: byte 56: {} edges, but its lists have {}", options.path,
                      kGraphHeaderFile, header.edge_count, edges.edge_count());
  }
  return EdgeListSummary{.edge_count = header.edge_count, .vertex_count = header.vertex_count};
}

Outcome<GraphHeader> check_pages(const std::string& path, unsigned threads) {
  const auto pages = Pages::open(path);
  if (!pages) return pages.error();
  const GraphHeader& header = (*pages)->header();
  ArcSum out(/*by_target=*/false, weight_bytes(header.weight));
  if (auto done = scan_pages(**pages, Direction::kOut, "check " + path, threads, out); !done) {
    return done.error();
  }
  if (!header.is_directed) {
    if (out.is_symmetric()) return header;
    return make_error(EIO, "{}: undirected, but not every edge is in both ends' lists", path);
  }
  ArcSum in(/*by_target=*/true, weight_bytes(header.weight));
  if (auto done = scan_pages(**pages, Direction::kIn, "check " + path, threads, in); !done) {
    return done.error();
  }
  if (in.all() != out.all()) {
    return make_error(EIO, "{}: the lists of its two directions hold different arcs", path);
  }
  return header;
}

}  // namespace graphlane::graphfmt
