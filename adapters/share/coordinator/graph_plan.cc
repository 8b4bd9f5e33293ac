#include "adapters/share/coordinator/graph_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace graphlane::share {
namespace {

// The most units that jobs keep mapped: a process may have 65530 mappings.
constexpr size_t kKeptPartitionsMax = 16384;
// Smaller chunks are not worth a read from a device.
constexpr uint64_t kReadBytesMin = uint64_t{1} << 20;

uint64_t chunk_bytes_for(const Layout& layout, uint64_t graph_bytes, uint32_t vertex_bytes,
                         const LastLevelCache& cache) {
  if (layout.record.size_bytes == 0) return UINT64_MAX;
  const bool known = graph_bytes > 0;  // not with a loader
  return chunk_size_bytes({.cache_bytes = cache.size_bytes,
                           .reserved_bytes = cache.size_bytes / 8,
                           .core_count = cache.core_count,
                           .graph_bytes = known ? graph_bytes : UINT32_MAX,
                           .vertex_count = known ? layout.vertex_count : 0,
                           .vertex_bytes = vertex_bytes,
                           .record_bytes = layout.record.size_bytes});
}

// The chunk size of a graph that does not fit: at most a 32nd of its part, because the units that
// are unpacked and read take room from those that could stay. A power of two, so that labels stay
// valid while the part changes little.
uint64_t smaller_chunk_bytes(uint64_t chunk_bytes, RecordFormat record, uint64_t part_bytes) {
  const uint64_t wanted = std::bit_floor(std::max(part_bytes / 32, kReadBytesMin));
  const uint64_t step = std::lcm<uint64_t>(record.size_bytes, kCacheLineBytes);
  return std::min(chunk_bytes, std::max(step, wanted / step * step));
}

GlobalTable::Batching batching_of(const GraphPlan& plan, const GraphLimits& limits) {
  const uint64_t most_bytes = limits.part_bytes / (plan.is_resident ? 8 : 24);
  GlobalTable::Batching batching{
      .unit_bytes = {},
      .batch_bytes = plan.chunk_bytes == UINT64_MAX ? 0 : std::min(plan.chunk_bytes, most_bytes),
      .ahead_bytes = limits.part_bytes / 8,
      .order = limits.order,
      .first_of_same = {}};
  for (uint32_t unit = 0; unit < plan.units.count(); ++unit) {
    batching.unit_bytes.push_back(plan.units.bytes_of(unit));
    batching.first_of_same.push_back(plan.units.first_of(plan.units.partition_of(unit)));
  }
  return batching;
}

}  // namespace

GraphPlan plan_graph(const Layout& layout, const std::vector<uint64_t>& partition_bytes,
                     uint32_t vertex_bytes, const GraphLimits& limits) {
  const uint64_t graph_bytes =
      std::accumulate(partition_bytes.begin(), partition_bytes.end(), uint64_t{0});
  GraphPlan plan;
  plan.has_edges = layout.record.size_bytes != 0 && !layout.by_loader;
  // An eighth stays free for later graphs. The size of a loader's graph is unknown.
  plan.is_resident =
      !layout.by_loader && graph_bytes <= limits.part_bytes / 8 * 7 &&
      partition_bytes.size() <= std::min(limits.buffer_count_max, kKeptPartitionsMax);
  plan.chunk_bytes = chunk_bytes_for(layout, graph_bytes, vertex_bytes, limits.cache);
  const bool is_cut = plan.has_edges && !plan.is_resident;
  if (is_cut) {
    plan.chunk_bytes = smaller_chunk_bytes(plan.chunk_bytes, layout.record, limits.part_bytes);
  }
  plan.units =
      Units(partition_bytes, is_cut ? unit_bytes_for(plan.chunk_bytes, graph_bytes) : kUncut);
  plan.batching = batching_of(plan, limits);
  return plan;
}

}  // namespace graphlane::share
