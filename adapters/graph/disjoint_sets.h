// Disjoint sets of vertices (union-find), for connected components: each vertex has a parent, and
// roots are their own. A set's root is its lowest vertex. Afforest's hooking (Sutton, Ben-Nun,
// Barak: Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling, IPDPS 2018).
//
// Parents are shared values (shared_value.h): any thread may join sets while others do.
#pragma once

#include <algorithm>

#include "adapters/graph/graph.h"
#include "adapters/graph/shared_value.h"
#include "adapters/graph/worker_pool.h"

namespace graphlane {

// One set of the two that `a` and `b` belong to. `parents`: of all vertices.
inline void join_sets(VertexId* parents, VertexId a, VertexId b) {
  VertexId left = load_shared(parents[a]);
  VertexId right = load_shared(parents[b]);
  while (left != right) {
    // A root gets a lower parent only, so there are no cycles.
    const VertexId high = std::max(left, right);
    const VertexId low = std::min(left, right);
    VertexId above = load_shared(parents[high]);
    if (above == low) return;
    if (above == high && std::atomic_ref<VertexId>(parents[high])
                             .compare_exchange_strong(above, low, std::memory_order_relaxed)) {
      return;
    }
    left = load_shared(parents[load_shared(parents[high])]);
    right = load_shared(parents[low]);
  }
}

// Makes every vertex's parent its root, by all workers.
inline void compress_sets(VertexId* parents, uint64_t vertex_count, WorkerPool& pool) {
  pool.for_blocks(vertex_count, 1 << 14, [&](uint64_t begin, uint64_t end, unsigned) {
    for (uint64_t v = begin; v < end; ++v) {
      VertexId root = load_shared(parents[v]);
      while (root != load_shared(parents[root])) root = load_shared(parents[root]);
      store_shared(parents[v], root);
    }
  });
}

}  // namespace graphlane
