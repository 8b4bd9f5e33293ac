#include "adapters/hybrid/strips.h"

#include <algorithm>

namespace graphlane::hybrid {

using graphfmt::DualSide;

Strips::Strips(const DualGraph& graph, uint32_t own) : graph_(graph), own_(own) {
  for (const DualSide side : {DualSide::kOut, DualSide::kIn}) {
    if (side == DualSide::kIn && !graph.is_directed()) break;
    for (uint32_t other = 0; other < graph.geometry().partitions(); ++other) {
      blocks_.push_back({side, own, other});
    }
  }
}

void Strips::add_to(SweepPlan& plan, uint64_t neighbours_max) {
  std::vector<BlockIndexPtr> indexes;
  for (const BlockId& block : blocks_) {
    if (BlockIndexPtr index = graph_.index(block); index != nullptr) {
      indexes.push_back(std::move(index));
    }
  }
  const auto bytes_before = [&](uint64_t vertex) {
    uint64_t sum = 0;
    for (const BlockIndexPtr& index : indexes) sum += index->index.offset(vertex);
    return sum;
  };
  uint64_t bytes = 0, arcs = 0;
  for (const BlockIndexPtr& index : indexes) {
    bytes += index->index.lists_bytes();
    arcs += index->index.arc_count();
  }
  const double arcs_a_byte =
      static_cast<double>(arcs) / static_cast<double>(std::max<uint64_t>(bytes, 1));
  // Few bytes may be many arcs.
  const auto strip_bytes = static_cast<uint64_t>(static_cast<double>(BlockSweep::kChunkArcs) /
                                                 std::max(arcs_a_byte, 4.0));
  const uint64_t size = graph_.geometry().size(own_), begin = bytes_before(next_);
  for (uint64_t& first = next_; first < size;) {
    if (static_cast<double>(bytes_before(first) - begin) * arcs_a_byte >
        static_cast<double>(neighbours_max)) {
      break;
    }
    const uint64_t limit = bytes_before(first) + strip_bytes;
    uint64_t low = first + 1, high = size + 1;
    while (high - low > 1) {
      const uint64_t middle = (low + high) / 2;
      (bytes_before(middle) <= limit ? low : high) = middle;
    }
    auto strip = std::make_unique<Strip>();
    strip->first = first;
    strip->end = first =
        graphfmt::whole_groups_end(first, low, size, graph_.dual().codec().group_vertices());
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

void Strips::take(const SweepChunk& chunk, const ChunkLists& lists, const uint32_t* values,
                  const Give& give) {
  Strip& strip = *strips_[chunk.strip];
  Part& part = strip.parts[chunk.tag];
  part.vertices.assign(lists.vertices.begin(), lists.vertices.end());
  part.starts.assign(lists.starts.begin(), lists.starts.end());
  part.values.resize(lists.neighbours.size());
  for (size_t i = 0; i < part.values.size(); ++i) part.values[i] = values[lists.neighbours[i]];
  // Release and acquire: the worker that takes the last part sees the others'.
  if (strip.left.fetch_sub(1, std::memory_order_acq_rel) == 1) give_all(strip, give);
}

void Strips::give_all(Strip& strip, const Give& give) const {
  std::vector<uint64_t> ends(strip.end - strip.first + 1);
  for (const Part& part : strip.parts) {
    for (size_t i = 0; i < part.vertices.size(); ++i) {
      ends[part.vertices[i] - strip.first + 1] += part.starts[i + 1] - part.starts[i];
    }
  }
  for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  std::vector<uint32_t> all(ends.back());
  std::vector<uint64_t> next = ends;
  for (const Part& part : strip.parts) {
    for (size_t i = 0; i < part.vertices.size(); ++i) {
      uint64_t& to = next[part.vertices[i] - strip.first];
      std::copy(part.values.begin() + part.starts[i], part.values.begin() + part.starts[i + 1],
                all.begin() + static_cast<ptrdiff_t>(to));
      to += part.starts[i + 1] - part.starts[i];
    }
  }
  std::vector<Part>().swap(strip.parts);
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    if (ends[i] == ends[i + 1]) continue;
    give(static_cast<uint32_t>(strip.first + i),
         std::span<const uint32_t>(all).subspan(ends[i], ends[i + 1] - ends[i]));
  }
}

}  // namespace graphlane::hybrid
