// Belady's cache for values of different lengths. It knows the whole trace. It evicts the value
// with the farthest next get, as long as that is farther than the newcomer's next get.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "experiments/costs/kv/trace.h"

namespace graphlane::replay {

// Hits of the trace. `cost(vertex)`: bytes that its value takes in the cache.
template <class Cost>
uint64_t belady_hits(const std::vector<Get>& trace, uint32_t vertex_count, uint64_t budget_bytes,
                     const Cost& cost) {
  const uint64_t never = trace.size();
  std::vector<uint64_t> next(trace.size()), latest(vertex_count, never);
  for (uint64_t i = trace.size(); i-- > 0;) {
    next[i] = latest[trace[i].vertex];
    latest[trace[i].vertex] = i;
  }
  std::vector<uint64_t> due(vertex_count, never);  // of cached values: their next get
  std::vector<bool> is_cached(vertex_count);
  std::priority_queue<std::pair<uint64_t, uint32_t>> farthest;  // what is not up to date is skipped
  uint64_t used = 0, hits = 0;
  for (uint64_t i = 0; i < trace.size(); ++i) {
    const uint32_t v = trace[i].vertex;
    if (is_cached[v]) {
      ++hits;
    } else {
      const uint64_t size = cost(v);
      while (next[i] != never && used + size > budget_bytes && !farthest.empty()) {
        const auto [when, victim] = farthest.top();
        if (!is_cached[victim] || due[victim] != when) {
          farthest.pop();
          continue;
        }
        if (when <= next[i]) break;
        farthest.pop();
        is_cached[victim] = false;
        used -= cost(victim);
      }
      if (next[i] == never || used + size > budget_bytes) continue;
      used += size;
      is_cached[v] = true;
    }
    due[v] = next[i];
    farthest.push({next[i], v});
  }
  return hits;
}

}  // namespace graphlane::replay
