#include "adapters/hybrid/strips.h"

namespace graphlane::hybrid {

Strips::Strips(const DualGraph& graph, uint32_t own) : graph_(graph), own_(own) {
  for (const DualSide side : {DualSide::kOut, DualSide::kIn}) {
    if (side == DualSide::kIn && !graph.is_directed()) break;
    for (uint32_t other = 0; other < graph.geometry().partitions(); ++other) blocks_.push_back({side, own, other});
  }
}

void Strips::add_to(SweepPlan& plan) {
  std::vector<BlockIndexPtr> indexes;
  for (const BlockId& block : blocks_) {
    if (BlockIndexPtr index = graph_.index(block); index != nullptr) indexes.push_back(std::move(index));
  }
  const auto bytes_before = [&](uint64_t vertex) {
    uint64_t sum = 0;
    for (const BlockIndexPtr& index : indexes) sum += index->index.offset(vertex);
    return sum;
  };
  const uint64_t size = graph_.geometry().size(own_);
  for (uint64_t first = 0; first < size;) {
    const uint64_t limit = bytes_before(first) + BlockSweep::kChunkBytes;
    uint64_t low = first + 1, high = size + 1;
    while (high - low > 1) {
      const uint64_t middle = (low + high) / 2;
      (bytes_before(middle) <= limit ? low : high) = middle;
    }
    auto strip = std::make_unique<Strip>();
    strip->first = first;
    strip->end = first = whole_groups_end(first, low, size, graph_.dual().codec().group_vertices());
    uint32_t count = 0;
    for (const BlockIndexPtr& index : indexes) {
      const uint64_t from = index->index.offset(strip->first), to = index->index.offset(strip->end);
      if (from == to) continue;
      SweepChunk& chunk = plan.chunks.emplace_back();
      chunk.index = index;
      chunk.first = strip->first;
      chunk.end = strip->end;
      chunk.lists = {from, to - from};
      chunk.group = 0;
      chunk.tag = count++;
      chunk.strip = static_cast<uint32_t>(strips_.size());
    }
    if (count == 0) continue;
    strip->parts.resize(count);
    strip->left.store(count, std::memory_order_relaxed);
    strips_.push_back(std::move(strip));
  }
}

void Strips::take(const SweepChunk& chunk, const ChunkLists& lists, const Give& give) {
  Strip& strip = *strips_[chunk.strip];
  Part& part = strip.parts[chunk.tag];
  part.vertices.assign(lists.vertices.begin(), lists.vertices.end());
  part.starts.assign(lists.starts.begin(), lists.starts.end());
  const auto first = static_cast<VertexId>(graph_.geometry().first(chunk.index->other));
  part.neighbours.resize(lists.neighbours.size());
  for (size_t i = 0; i < part.neighbours.size(); ++i) part.neighbours[i] = first + lists.neighbours[i];
  // Release and acquire: the worker that takes the last part sees the others'.
  if (strip.left.fetch_sub(1, std::memory_order_acq_rel) == 1) give_all(strip, give);
}

void Strips::give_all(Strip& strip, const Give& give) const {
  std::vector<uint64_t> ends(strip.end - strip.first + 1);
  for (const Part& part : strip.parts) {
    for (size_t i = 0; i < part.vertices.size(); ++i) ends[part.vertices[i] - strip.first + 1] += part.starts[i + 1] - part.starts[i];
  }
  for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  std::vector<VertexId> all(ends.back());
  std::vector<uint64_t> next = ends;
  for (const Part& part : strip.parts) {
    for (size_t i = 0; i < part.vertices.size(); ++i) {
      uint64_t& to = next[part.vertices[i] - strip.first];
      std::copy(part.neighbours.begin() + part.starts[i], part.neighbours.begin() + part.starts[i + 1],
                all.begin() + static_cast<ptrdiff_t>(to));
      to += part.starts[i + 1] - part.starts[i];
    }
  }
  std::vector<Part>().swap(strip.parts);
  const auto first = static_cast<VertexId>(graph_.geometry().first(own_) + strip.first);
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    if (ends[i] == ends[i + 1]) continue;
    give(first + static_cast<VertexId>(i), std::span<const VertexId>(all).subspan(ends[i], ends[i + 1] - ends[i]));
  }
}

}  // namespace graphlane::hybrid
