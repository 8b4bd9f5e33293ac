#include "graphfmt/sort/arc_sort.h"

#include <algorithm>
#include <cstring>

#include "graphfmt/sort/line.h"
#include "graphfmt/sort/run_fill.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/base/size.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kSortReaderBytesMax = uint64_t{64} << 20;
constexpr size_t kSortRunEdgesMin = size_t{64} << 10;
constexpr size_t kSortRunEdgesMax = size_t{8} << 20;
constexpr uint64_t kRangeArcsMin = uint64_t{256} << 10;
constexpr uint64_t kRangeArcsMax = uint64_t{16} << 20;

// Memory while sorting. Each thread holds the run's edges, its arcs twice, and encoded. The run
// that is filling holds its edges.
uint64_t sorting_bytes(const ArcSortOptions& options, unsigned threads, size_t run_edges) {
  const size_t arc_bytes = options.is_weighted ? sizeof(WeightedArc) : sizeof(Arc);
  const uint64_t edges_bytes =
      run_edges * edge_size_bytes(options.is_weighted, options.weight_type);
  return edges_bytes + threads * (edges_bytes + 3 * run_edges * arc_bytes);
}

// Memory of a merging thread for each arc: twice to sort, a piece of a run, the neighbour and its
// encoding.
constexpr uint64_t merging_bytes_an_arc(bool is_weighted) { return is_weighted ? 62 : 30; }

}  // namespace

struct ArcSorter::MergeItem {
  size_t index = 0;
  Buffer arcs;
  Buffer scratch;
  Buffer piece;  // of a run that was spilled
  ListBatch batch;
};

Outcome<std::unique_ptr<ArcSorter>> ArcSorter::create(const ArcSortOptions& options) {
  const uint64_t budget = options.memory_budget_bytes;
  const uint64_t reader_bytes = std::min(kSortReaderBytesMax, budget / 8);
  const uint64_t half = budget / 2 - reader_bytes;
  unsigned threads = usable_threads(options.threads);
  while (threads > 1 && sorting_bytes(options, threads, kSortRunEdgesMin) > half) --threads;
  if (const uint64_t least = sorting_bytes(options, 1, kSortRunEdgesMin); least > half) {
    return make_error(EINVAL, "a memory budget of {}: too small, sorting needs {}M",
                      format_size(budget), (least * 8 / 3 >> 20) + 1);
  }
  size_t run_edges = options.run_edges;
  if (run_edges == 0) {
    const uint64_t an_edge = sorting_bytes(options, threads, 1);
    run_edges = std::clamp<size_t>(half / an_edge, kSortRunEdgesMin, kSortRunEdgesMax);
  }
  return std::unique_ptr<ArcSorter>(
      new ArcSorter(options, threads, reader_bytes, run_edges, budget / 2));
}

ArcSorter::ArcSorter(const ArcSortOptions& options, unsigned threads, uint64_t reader_bytes,
                     size_t run_edges, uint64_t store_bytes)
    : options_(options),
      threads_(threads),
      reader_bytes_(reader_bytes),
      run_edges_(run_edges),
      edge_bytes_(edge_size_bytes(options.is_weighted, options.weight_type)),
      weight_bytes_(edge_bytes_ - sizeof(Edge)),
      orders_((options.by_source ? 1u : 0u) + (options.by_target ? 1u : 0u)),
      store_(options.spill_path, arc_run_bytes_max(run_edges, weight_bytes_), 0, store_bytes) {}

Outcome<void> ArcSorter::take(EdgeBatch& batch) {
  return fill_runs({batch.records.data(), batch.records_bytes()}, run_edges_ * edge_bytes_,
                   filling_, filling_bytes_, [this]() -> Outcome<void> {
                     close_run();
                     return {};
                   });
}

void ArcSorter::close_run() {
  MutexLock lock(mu_);
  full_.push_back({run_count_++, filling_bytes_ / edge_bytes_, std::exchange(filling_, Buffer())});
  filling_bytes_ = 0;
  tables_.resize(run_count_ * orders_);
}

std::optional<ArcSorter::FullRun> ArcSorter::next_full() {
  MutexLock lock(mu_);
  if (full_.empty()) return std::nullopt;
  FullRun full = std::move(full_.back());
  full_.pop_back();
  return full;
}

Outcome<void> ArcSorter::settle() {
  while (std::optional<FullRun> full = next_full()) {
    auto done = weight_bytes_ == 0   ? sort_full<Arc, Edge>(*full)
                : weight_bytes_ == 4 ? sort_full<WeightedArc, WeightedEdge>(*full)
                                     : sort_full<WeightedArc, Float64Edge>(*full);
    if (!done) return done;
  }
  return {};
}

Outcome<void> ArcSorter::finish() {
  if (filling_bytes_ > 0) close_run();
  filling_ = Buffer();
  return or_no_memory([&] { return settle(); });
}

template <class A, class E>
Outcome<void> ArcSorter::sort_full(const FullRun& full) {
  Buffer arcs, scratch;
  for (Buffer* buffer : {&arcs, &scratch}) {
    if (auto grown = buffer->reserve(full.edge_count * sizeof(A)); !grown) return grown;
  }
  if (options_.by_source) {
    if (auto kept = keep_sorted<A, E>(full, ArcOrder::kBySource, arcs, scratch); !kept) return kept;
  }
  if (!options_.by_target) return {};
  return keep_sorted<A, E>(full, ArcOrder::kByTarget, arcs, scratch);
}

template <class A, class E>
Outcome<void> ArcSorter::keep_sorted(const FullRun& full, ArcOrder order, Buffer& arcs,
                                     Buffer& scratch) {
  const E* const edges = full.edges.as<E>();
  A* const to = arcs.as<A>();
  size_t count = 0;
  const auto add = [&](const E& edge, uint32_t first, uint32_t second) {
    to[count].key = arc_key(first, second);
    if constexpr (requires { edge.weight; }) {
      to[count].weight = 0;
      std::memcpy(&to[count].weight, &edge.weight, sizeof edge.weight);
    }
    ++count;
  };
  for (size_t e = 0; e < full.edge_count; ++e) {
    const E& edge = edges[e];
    if (options_.is_simple && edge.source == edge.target) continue;
    if (order == ArcOrder::kBySource) {
      add(edge, edge.source, edge.target);
    } else {
      add(edge, edge.target, edge.source);
    }
  }
  const A* const sorted = sort_arcs(to, scratch.as<A>(), count);
  RunBuffers encoded;
  if (auto grown = encoded.edges.reserve(arc_run_bytes_max(count, weight_bytes_)); !grown) {
    return grown;
  }
  ArcRunTable table;
  size_t length;
  if constexpr (std::is_same_v<A, Arc>) {
    length = encode_run(sorted, count, encoded.edges.as<uint8_t>(), table);
  } else {
    length = encode_run(sorted, count, weight_bytes_, encoded.edges.as<uint8_t>(), table);
  }
  const size_t index = store_index(full.index, order);
  {
    MutexLock lock(mu_);
    tables_[index] = std::move(table);
  }
  return store_.put(index, length, encoded);
}

std::pair<ArcSorter::BlockPlace, ArcSorter::BlockPlace> ArcSorter::blocks_of(
    const ArcRunTable& table, const Range& range) {
  const auto begins_at = [&](uint64_t vertex) {
    return std::partition_point(table.begin(), table.end() - 1, [&](const ArcBlock& block) {
      return first_of(block.first_key) < vertex;
    });
  };
  const auto end = begins_at(range.end);
  auto block = begins_at(range.first);
  if (block != table.begin()) --block;
  return {std::min(block, end), end};
}

std::vector<ArcSorter::Range> ArcSorter::divide(size_t order_index, uint64_t arcs_target) const {
  std::vector<std::pair<uint32_t, uint32_t>> blocks;  // first vertex, arcs
  for (size_t index = order_index; index < tables_.size(); index += orders_) {
    for (const ArcBlock& block : tables_[index]) {
      if (block.arc_count > 0) blocks.emplace_back(first_of(block.first_key), block.arc_count);
    }
  }
  std::sort(blocks.begin(), blocks.end());
  std::vector<Range> ranges;
  Range range;
  for (const auto& [first, arc_count] : blocks) {
    if (range.arc_count_max >= arcs_target && first > range.first) {
      range.end = first;
      ranges.push_back(range);
      range = {.first = first};
    }
    range.arc_count_max += arc_count;
  }
  range.end = uint64_t{1} << 32;
  if (range.arc_count_max > 0) ranges.push_back(range);
  // A block may reach into the ranges behind the one in which it begins.
  for (Range& r : ranges) {
    r.arc_count_max = 0;
    for (size_t index = order_index; index < tables_.size(); index += orders_) {
      const auto [block, end] = blocks_of(tables_[index], r);
      for (auto b = block; b < end; ++b) r.arc_count_max += b->arc_count;
    }
  }
  return ranges;
}

Outcome<void> ArcSorter::merge(ArcOrder order, ListSink& sink) {
  return or_no_memory([&]() -> Outcome<void> {
    const size_t order_index = store_index(0, order);
    const uint64_t used = store_.memory_used_bytes();
    const uint64_t free_bytes =
        options_.memory_budget_bytes - std::min(used, options_.memory_budget_bytes / 2);
    const uint64_t arcs_max = free_bytes / threads_ / merging_bytes_an_arc(options_.is_weighted);
    const uint64_t large = store_.spilled_bytes() > 0 ? kRangeArcsMax : 4 * kRangeArcsMin;
    const std::vector<Range> ranges =
        divide(order_index, std::clamp(arcs_max / 2, uint64_t{1}, large));
    uint64_t total = 0;
    for (size_t index = order_index; index < tables_.size(); index += orders_) {
      for (const ArcBlock& block : tables_[index]) total += block.arc_count;
    }
    Progress progress(options_.label, total, false);
    size_t next = 0;
    Line<MergeItem> line;
    line.load = [&](MergeItem& item) -> Outcome<bool> {
      item.index = next;
      return next++ < ranges.size();
    };
    line.work = [&](MergeItem& item) -> Outcome<void> {
      const Range& range = ranges[item.index];
      auto done = options_.is_weighted ? gather<WeightedArc>(range, order, item)
                                       : gather<Arc>(range, order, item);
      return done ? sink.prepare(item.batch) : done;
    };
    line.unload = [&](MergeItem& item) {
      progress.add(item.batch.neighbours.size());
      return sink.take(item.batch);
    };
    line.settle = [&](MergeItem& item) { return sink.settle(item.batch); };
    return line.run(threads_);
  });
}

template <class A>
Outcome<void> ArcSorter::gather(const Range& range, ArcOrder order, MergeItem& item) const {
  const uint64_t needed = range.arc_count_max * merging_bytes_an_arc(options_.is_weighted);
  if (needed > options_.memory_budget_bytes / 2 && range.arc_count_max > kRangeArcsMin) {
    return make_error(
        ENOMEM,
        "vertex {}, or one behind it, has too many neighbours for a memory budget of {}: give {}",
        range.first, format_size(options_.memory_budget_bytes), format_size(2 * needed));
  }
  for (Buffer* buffer : {&item.arcs, &item.scratch}) {
    if (auto grown = buffer->reserve(range.arc_count_max * sizeof(A)); !grown) return grown;
  }
  A* const arcs = item.arcs.as<A>();
  size_t count = 0;
  for (size_t index = store_index(0, order); index < tables_.size(); index += orders_) {
    const ArcRunTable& table = tables_[index];
    const auto [first_block, end] = blocks_of(table, range);
    if (first_block == end) continue;
    const size_t bytes = end->offset - first_block->offset;
    if (auto grown = item.piece.reserve(bytes + kArcRunSlack); !grown) return grown;
    const auto piece = store_.view_edges(index, first_block->offset, bytes, item.piece);
    if (!piece) return piece.error();
    for (auto block = first_block; block != end; ++block) {
      A* const decoded = arcs + count;
      const uint8_t* const from =
          reinterpret_cast<const uint8_t*>(*piece) + (block->offset - first_block->offset);
      const uint8_t* const to = from + ((block + 1)->offset - block->offset);
      bool sound;
      if constexpr (std::is_same_v<A, Arc>) {
        sound = decode_block(*block, from, to, decoded);
      } else {
        sound = decode_block(*block, weight_bytes_, from, to, decoded);
      }
      if (!sound) {
        return make_error(EIO, "{}: run {}: byte {}: not what was written", options_.spill_path,
                          index, block->offset);
      }
      // Only the first and the last block have arcs of other ranges.
      A* kept = decoded;
      for (uint32_t i = 0; i < block->arc_count; ++i) {
        const uint32_t first = first_of(decoded[i].key);
        if (first >= range.first && first < range.end) *kept++ = decoded[i];
      }
      count += static_cast<size_t>(kept - decoded);
    }
  }
  split(item, sort_arcs(arcs, item.scratch.as<A>(), count), count);
  return {};
}

template <class A>
void ArcSorter::split(MergeItem& item, A* arcs, size_t count) const {
  if (options_.is_simple) {
    count = static_cast<size_t>(
        std::unique(arcs, arcs + count, [](const A& a, const A& b) { return a.key == b.key; }) -
        arcs);
  }
  ListBatch& batch = item.batch;
  batch.vertices.clear();
  batch.starts.clear();
  batch.neighbours.resize(count);
  batch.weights.resize(count * weight_bytes_);
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || first_of(arcs[i].key) != first_of(arcs[i - 1].key)) {
      batch.vertices.push_back(first_of(arcs[i].key));
      batch.starts.push_back(i);
    }
    batch.neighbours[i] = second_of(arcs[i].key);
    if constexpr (std::is_same_v<A, WeightedArc>) {
      std::memcpy(batch.weights.data() + i * weight_bytes_, &arcs[i].weight, weight_bytes_);
    }
  }
  batch.starts.push_back(count);
}

}  // namespace graphlane::graphfmt
