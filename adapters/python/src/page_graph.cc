#include "adapters/python/src/page_graph.h"

#include <algorithm>

namespace graphlane::python {

using graphfmt::Direction;

constexpr uint32_t kBufferPages = 64;
constexpr uint32_t kPrefetchPages = 8;

Outcome<std::unique_ptr<PageGraph>> PageGraph::open(const std::string& path, uint64_t cache_bytes,
                                                    bool in_memory) {
  kv::KvOptions options;
  options.cache.budget_bytes = in_memory ? 0 : cache_bytes;
  options.in_memory = in_memory;
  auto opened = kv::KvGraph::open(path, options, /*wants_in=*/true);
  if (!opened) return opened.error();
  auto graph = std::make_unique<PageGraph>();
  graph->graph_ = std::move(*opened);
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    MutexLock lock(graph->mu_);
    graph->readers_[direction == Direction::kOut ? 0 : 1] = std::make_unique<kv::KvReader>(
        graph->graph_->store(direction),
        kv::BufferOptions{.frames = kBufferPages, .depth = kPrefetchPages});
  }
  return graph;
}

Outcome<void> PageGraph::read(Direction direction, std::span<const uint64_t> vertices, bool weights,
                              Lists& into) {
  for (const uint64_t vertex : vertices) {
    if (vertex < graph_->vertex_count()) continue;
    return make_error(ERANGE, "{}: has no vertex {}: its {} vertices begin with 0", graph_->path(),
                      vertex, graph_->vertex_count());
  }
  // The reader takes keys in order and each page once.
  std::vector<uint64_t> keys(vertices.begin(), vertices.end());
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<uint64_t> ends(keys.size());
  Lists found;
  std::vector<uint32_t> scratch;
  MutexLock lock(mu_);
  const auto visit = [&](size_t index, kv::PinnedValue value) -> Outcome<void> {
    if (value) {
      const auto list = graph_->decode(keys[index], value.bytes(), scratch);
      if (!list) return list.error();
      found.neighbours.insert(found.neighbours.end(), list->neighbours.begin(),
                              list->neighbours.end());
      for (size_t i = 0; weights && i < list->neighbours.size(); ++i) {
        found.weights.push_back(graph_->weight(*list, i));
      }
    }
    ends[index] = found.neighbours.size();
    return {};
  };
  if (Outcome<void> done =
          readers_[direction == Direction::kOut ? 0 : 1]->multi_get(keys, {}, visit);
      !done) {
    return done;
  }

  into.offsets.assign(1, 0);
  for (const uint64_t vertex : vertices) {
    const size_t at = static_cast<size_t>(std::ranges::lower_bound(keys, vertex) - keys.begin());
    const auto begin = static_cast<std::ptrdiff_t>(at == 0 ? 0 : ends[at - 1]),
               end = static_cast<std::ptrdiff_t>(ends[at]);
    into.neighbours.insert(into.neighbours.end(), found.neighbours.begin() + begin,
                           found.neighbours.begin() + end);
    if (weights) {
      into.weights.insert(into.weights.end(), found.weights.begin() + begin,
                          found.weights.begin() + end);
    }
    into.offsets.push_back(into.neighbours.size());
  }
  return {};
}

Outcome<void> PageGraph::degrees(Direction direction, std::span<uint64_t> into) {
  std::ranges::fill(into, 0);
  std::vector<uint32_t> scratch;
  MutexLock lock(mu_);
  return readers_[direction == Direction::kOut ? 0 : 1]->for_each(
      0, [&](uint64_t vertex, std::span<const uint8_t> value) -> Outcome<void> {
        const auto list = graph_->decode(vertex, value, scratch);
        if (!list) return list.error();
        if (vertex >= into.size()) {
          return make_error(EIO, "{}: has a list of vertex {}, which is none", graph_->path(),
                            vertex);
        }
        into[vertex] = list->neighbours.size();
        return {};
      });
}

}  // namespace graphlane::python
