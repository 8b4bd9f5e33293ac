// The C interface over Graph and ListLoader. No exception crosses it.
#include <cerrno>
#include <memory>
#include <new>
#include <string>

#include "adapters/graph/graph.h"
#include "adapters/graph/kit/graphlane_graph.h"
#include "adapters/graph/kit/list_reader.h"

using graphlane::EdgeSide;
using graphlane::Error;
using graphlane::Graph;
using graphlane::make_error;
using graphlane::Outcome;
using graphlane::VertexId;

namespace graphlane::kit {

thread_local std::string last_graph_error;

int graph_failed(const Error& error) {
  last_graph_error = error.text;
  return error.code;
}

EdgeSide edge_side(graphlane_side side) {
  return side == GRAPHLANE_IN ? EdgeSide::kIn : EdgeSide::kOut;
}

template <class Work>
int guarded(const Work& work) {
  try {
    const Outcome<void> done = work();
    return done ? 0 : graph_failed(done.error());
  } catch (const std::bad_alloc&) {
    last_graph_error = "out of memory";
    return ENOMEM;
  }
}

}  // namespace graphlane::kit

using graphlane::kit::edge_side;
using graphlane::kit::guarded;
using graphlane::kit::last_graph_error;
using graphlane::kit::ReaderPool;

struct graphlane_graph {
  std::unique_ptr<Graph> graph;
  std::unique_ptr<ReaderPool> readers;  // destroyed first
};

extern "C" {

int graphlane_graph_open(const char* path, const graphlane_graph_options* options,
                         graphlane_graph** graph) {
  return guarded([&]() -> Outcome<void> {
    graphlane::GraphOptions wanted;
    if (options != nullptr) {
      if (options->cache_bytes != 0) wanted.cache_bytes = options->cache_bytes;
      wanted.in_memory = options->in_memory != 0;
    }
    auto opened = Graph::open(path, wanted);
    if (!opened) return opened.error();
    auto made = std::make_unique<graphlane_graph>();
    made->graph = std::move(*opened);
    made->readers = std::make_unique<ReaderPool>(*made->graph);
    *graph = made.release();
    return {};
  });
}

void graphlane_graph_close(graphlane_graph* graph) { delete graph; }
const char* graphlane_graph_error(void) { return last_graph_error.c_str(); }

uint64_t graphlane_graph_vertex_count(const graphlane_graph* graph) {
  return graph->graph->vertex_count();
}
uint64_t graphlane_graph_arc_count(const graphlane_graph* graph) {
  return graph->graph->arc_count();
}
int graphlane_graph_is_directed(const graphlane_graph* graph) {
  return graph->graph->is_directed() ? 1 : 0;
}

uint64_t graphlane_graph_degree(const graphlane_graph* graph, graphlane_side side,
                                uint64_t vertex) {
  if (vertex >= graph->graph->vertex_count()) return 0;
  return graph->graph->degree(static_cast<VertexId>(vertex), edge_side(side));
}

int graphlane_graph_neighbors(graphlane_graph* graph, graphlane_side side, uint64_t vertex,
                              uint32_t* list, uint64_t capacity, uint64_t* count) {
  uint64_t offsets[2] = {};
  const int error =
      graphlane_graph_multi_neighbors(graph, side, &vertex, 1, offsets, list, capacity);
  *count = offsets[1];
  return error;
}

int graphlane_graph_multi_neighbors(graphlane_graph* graph, graphlane_side side,
                                    const uint64_t* vertices, size_t count, uint64_t* offsets,
                                    uint32_t* list, uint64_t capacity) {
  return guarded([&]() -> Outcome<void> {
    offsets[0] = 0;
    for (size_t i = 0; i < count; ++i) {
      if (Outcome<void> checked = graphlane::kit::check_vertex(*graph->graph, vertices[i]);
          !checked) {
        return checked;
      }
      offsets[i + 1] = offsets[i] + graphlane_graph_degree(graph, side, vertices[i]);
    }
    if (list == nullptr && capacity == 0) return {};
    if (offsets[count] > capacity) {
      return make_error(ENOSPC, "{}: these lists have {} neighbours: there is room for {}",
                        graph->graph->path(), offsets[count], capacity);
    }
    return graph->readers->read({.side = edge_side(side),
                                 .vertices = vertices,
                                 .count = count,
                                 .offsets = offsets,
                                 .neighbours = list});
  });
}

}  // extern "C"
