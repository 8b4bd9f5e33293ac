#include "adapters/kv/kv_graph.h"

namespace graphlane::kv {

using graphfmt::Direction;

Outcome<std::unique_ptr<KvGraph>> KvGraph::open(const std::string& path, const KvOptions& options,
                                                bool wants_in) {
  auto pages = graphfmt::Pages::open(path);
  if (!pages) return pages.error();
  auto graph = std::make_unique<KvGraph>();
  graph->pages_ = std::move(*pages);
  const bool has_in = wants_in && graph->pages_->header().is_directed;
  KvOptions each = options;
  if (has_in) each.cache.budget_bytes /= 2;
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    if (direction == Direction::kIn && !has_in) break;
    auto store = KvStore::open(graph->pages_->store(direction), each);
    if (!store) return store.error();
    graph->stores_[direction == Direction::kOut ? 0 : 1] = std::move(*store);
  }
  return graph;
}

PagedFiles::Moved KvGraph::moved() const {
  PagedFiles::Moved all;
  for (const auto& store : stores_) {
    if (store == nullptr) continue;
    all.io_count += store->moved().io_count;
    all.bytes += store->moved().bytes;
  }
  return all;
}

Outcome<KvGraph::List> KvGraph::decode(uint64_t vertex, std::span<const uint8_t> value,
                                       std::vector<uint32_t>& scratch) const {
  const auto damaged = [&] {
    return make_error(EIO, "{}: the list of vertex {} is damaged", path(), vertex);
  };
  const Result<graphfmt::ListValue> parts = pages_->parse_value(value);
  if (!parts) return damaged();
  List list{.neighbours = {}, .weights = parts->weights};
  if (pages_->codec().kind() == graphfmt::CodecKind::kRaw &&
      reinterpret_cast<uintptr_t>(parts->list.data()) % sizeof(uint32_t) == 0) {
    list.neighbours = {reinterpret_cast<const uint32_t*>(parts->list.data()),
                       parts->neighbour_count};
    // The page was compared with its checksum; a neighbour that is no vertex was written so.
    for (const uint32_t neighbour : list.neighbours) {
      if (neighbour >= vertex_count()) return damaged();
    }
    return list;
  }
  if (scratch.size() < parts->neighbour_count) scratch.resize(parts->neighbour_count);
  const std::span<uint32_t> decoded(scratch.data(), parts->neighbour_count);
  if (!pages_->decode(*parts, decoded)) return damaged();
  list.neighbours = decoded;
  return list;
}

double KvGraph::weight(const List& list, size_t i) const {
  const graphfmt::WeightKind kind = pages_->header().weight;
  return kind == graphfmt::WeightKind::kNone ? 1 : graphfmt::value_weight(kind, list.weights, i);
}

}  // namespace graphlane::kv
