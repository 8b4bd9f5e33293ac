#include "adapters/hybrid/list_decoder.h"

#include <algorithm>

namespace graphlane::hybrid {

using graphfmt::kIndexGroupVertices;
using graphfmt::ListIndex;
using graphfmt::ListPlace;

ArcRange arcs_of(const DualGraph& graph, const SweepChunk& chunk) {
  const ListIndex& index = chunk.index->index;
  const bool is_range = chunk.items.empty();
  const uint32_t last = is_range ? 0 : chunk.items.back().vertex;
  const uint64_t first = index.first_arc(is_range ? chunk.first : chunk.items.front().vertex);
  const uint64_t end =
      is_range ? index.first_arc(chunk.end) : index.first_arc(last) + index.arcs(last);
  const graphfmt::DualBlock& block =
      graph.dual().block(chunk.index->side, chunk.index->own, chunk.index->other);
  return {.first = block.first_arc + first, .count = end - first};
}

Error ListDecoder::damaged(const SweepChunk& chunk, uint64_t offset, uint32_t vertex) const {
  const BlockIndex& block = *chunk.index;
  return make_error(EIO, "{}: damaged from byte {} on: the list of vertex {}",
                    graph_.blocks(block.side).path(),
                    graph_.dual().block(block.side, block.own, block.other).lists.offset + offset,
                    graph_.geometry().first(block.own) + vertex);
}

Outcome<ChunkLists> ListDecoder::decode(const SweepChunk& chunk, const uint8_t* bytes,
                                        const uint8_t* weights) {
  vertices_.clear();
  lengths_.clear();
  degrees_.clear();
  starts_.assign(1, 0);
  first_arcs_.clear();
  if (auto done = chunk.items.empty() ? decode_range(chunk, bytes) : decode_items(chunk, bytes);
      !done) {
    return done.error();
  }
  ChunkLists lists{.vertices = vertices_,
                   .starts = starts_,
                   .neighbours = {neighbours_.data(), starts_.back()},
                   .weights = {}};
  if (weights == nullptr) return lists;
  if (auto done = decode_weights(chunk, weights); !done) return done.error();
  lists.weights = weights_;
  return lists;
}

Outcome<void> ListDecoder::decode_weights(const SweepChunk& chunk, const uint8_t* codes) {
  const graphfmt::DualSide side = chunk.index->side;
  const graphfmt::WeightTable& table = graph_.dual().weights(side);
  const ArcRange all = arcs_of(graph_, chunk);
  const ByteRange range = table.range(all.first, all.count);
  weights_.resize(starts_.back());
  const auto damaged = [&] {
    return make_error(EIO,
                      "{}: damaged between byte {} and byte {}: weights that no encoder writes",
                      graph_.weights(side).path(), range.offset, range.end());
  };
  if (chunk.items.empty()) {
    if (all.count != weights_.size() ||
        !table.decode(all.first, weights_, codes, kDecodeSlackBytes))
      return damaged();
    return {};
  }
  // The weights of lists that are left out lie between.
  const uint64_t block_first =
      graph_.dual().block(side, chunk.index->own, chunk.index->other).first_arc;
  for (size_t i = 0; i < vertices_.size(); ++i) {
    const uint64_t first = block_first + first_arcs_[i];
    const std::span<double> weights(weights_.data() + starts_[i], starts_[i + 1] - starts_[i]);
    const uint64_t offset = table.range(first, weights.size()).offset - range.offset;
    if (!table.decode(first, weights, codes + offset, kDecodeSlackBytes)) return damaged();
  }
  return {};
}

Outcome<void> ListDecoder::decode_range(const SweepChunk& chunk, const uint8_t* bytes) {
  const ListIndex& index = chunk.index->index;
  const graphfmt::ListCodec& codec = graph_.dual().codec();
  if (index.shape().has_groups) {
    const uint64_t numbers_below = graph_.geometry().size(chunk.index->other);
    if (index.decode_groups(codec, chunk.first, chunk.end, bytes, numbers_below, vertices_, starts_,
                            neighbours_)) {
      return {};
    }
    return damaged(chunk, chunk.lists.offset, vertices_.empty() ? 0 : vertices_.back());
  }
  const bool has_degrees = index.shape().has_degrees;
  uint64_t total = 0;
  index.scan(chunk.first, chunk.end, [&](uint32_t vertex, const ListPlace& place, uint64_t degree) {
    vertices_.push_back(vertex);
    lengths_.push_back(static_cast<uint32_t>(place.length_bytes));
    if (!has_degrees) return;
    total += degree;
    degrees_.push_back(static_cast<uint32_t>(degree));
    starts_.push_back(static_cast<uint32_t>(total));
  });
  const std::span<const uint8_t> lists(bytes, chunk.lists.length_bytes);
  // A number has at least a byte.
  const uint64_t most = has_degrees ? total : lists.size();
  if (neighbours_.size() < most) neighbours_.resize(std::max<size_t>(most, neighbours_.size() * 2));
  const uint64_t limit = graph_.geometry().size(chunk.index->other);
  bool is_sound;
  if (has_degrees) {
    is_sound = codec.decode_lists(lists, lengths_, degrees_, {neighbours_.data(), total}, limit)
                   .has_value();
  } else {
    starts_.resize(lengths_.size() + 1);
    is_sound = codec.decode_counted(lists, lengths_, starts_, {neighbours_.data(), most}, limit)
                   .has_value();
  }
  if (!is_sound) {
    return damaged(chunk, chunk.lists.offset, vertices_.empty() ? 0 : vertices_.front());
  }
  return {};
}

// Each group of which a list is wanted, once.
Outcome<void> ListDecoder::decode_items_of_groups(const SweepChunk& chunk, const uint8_t* bytes) {
  const ListIndex& index = chunk.index->index;
  const uint64_t limit = graph_.geometry().size(chunk.index->other);
  for (size_t i = 0; i < chunk.items.size();) {
    const SweepItem& item = chunk.items[i];
    const uint64_t group = item.vertex / kIndexGroupVertices * kIndexGroupVertices;
    const uint64_t group_end = std::min(group + kIndexGroupVertices, index.vertex_count());
    group_vertices_.clear();
    group_starts_.assign(1, 0);
    if (!index.decode_groups(graph_.dual().codec(), group, group_end,
                             bytes + (item.offset - chunk.lists.offset), limit, group_vertices_,
                             group_starts_, group_neighbours_)) {
      return damaged(chunk, item.offset, item.vertex);
    }
    for (size_t g = 0; g < group_vertices_.size() && i < chunk.items.size(); ++g) {
      if (chunk.items[i].vertex != group_vertices_[g]) continue;
      const size_t begin = starts_.back(), count = group_starts_[g + 1] - group_starts_[g];
      if (neighbours_.size() < begin + count) {
        neighbours_.resize(std::max(begin + count, neighbours_.size() * 2));
      }
      std::copy_n(group_neighbours_.data() + group_starts_[g], count, neighbours_.data() + begin);
      vertices_.push_back(chunk.items[i++].vertex);
      starts_.push_back(static_cast<uint32_t>(begin + count));
      if (graph_.has_weights())
        first_arcs_.push_back(index.first_arc(item.vertex) + group_starts_[g]);
    }
  }
  return {};
}

Outcome<void> ListDecoder::decode_items(const SweepChunk& chunk, const uint8_t* bytes) {
  const ListIndex& index = chunk.index->index;
  if (index.shape().has_groups) return decode_items_of_groups(chunk, bytes);
  const graphfmt::ListCodec& codec = graph_.dual().codec();
  const uint64_t limit = graph_.geometry().size(chunk.index->other);
  for (const SweepItem& item : chunk.items) {
    const std::span<const uint8_t> list(bytes + (item.offset - chunk.lists.offset),
                                        item.length_bytes);
    const Result<size_t> count =
        index.shape().has_degrees ? Result<size_t>(index.degree(item.vertex)) : codec.count(list);
    if (!count || *count == 0) return damaged(chunk, item.offset, item.vertex);
    const size_t begin = starts_.back();
    const size_t end = begin + *count;
    if (neighbours_.size() < end) neighbours_.resize(std::max(end, neighbours_.size() * 2));
    if (!codec.decode(list, {neighbours_.data() + begin, *count}, limit, kDecodeSlackBytes)) {
      return damaged(chunk, item.offset, item.vertex);
    }
    vertices_.push_back(item.vertex);
    starts_.push_back(static_cast<uint32_t>(end));
    if (graph_.has_weights()) first_arcs_.push_back(index.first_arc(item.vertex));
  }
  return {};
}

}  // namespace graphlane::hybrid
