// sssp GRID ROOT [MEMORY_GB]: single-source shortest paths, by Bellman and Ford.
//
// GridGraph has no such program, but GraphM's evaluation (§5.1) runs one. It compiles against GridGraph's
// own headers and against these: g++ -O3 -fopenmp -I DIR sssp.cpp
//
// In a grid without weights, lengths of 1 .. 16 are computed from an edge's two ends, so that jobs of all
// kinds share one grid. Distances are in GRID/distance, one float per vertex.
#include <math.h>

#include <functional>  // GridGraph's own graph.hpp uses it without including it

#include "core/graph.hpp"

static float length_of(const Edge& edge, int edge_type) {
  if (edge_type == 1) return edge.weight;
  const unsigned ends = static_cast<unsigned>(edge.source) * 2654435761u +
                        static_cast<unsigned>(edge.target) * 2246822519u;
  return static_cast<float>(1 + (ends >> 28));
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: sssp [path] [start vertex id] [memory budget in GB]\n");
    return 2;
  }
  Graph graph(argv[1]);
  const VertexId root = atoi(argv[2]);
  graph.set_memory_bytes((argc > 3 ? atol(argv[3]) : 8l) << 30);
  if (root < 0 || root >= graph.vertices) {
    fprintf(stderr, "sssp: no vertex %d: there are %d\n", root, graph.vertices);
    return 2;
  }

  Bitmap* now = graph.alloc_bitmap();
  Bitmap* next = graph.alloc_bitmap();
  BigVector<float> distance(graph.path + "/distance", graph.vertices);
  graph.set_vertex_data_bytes(graph.vertices * static_cast<long>(sizeof(float)));
  distance.fill(INFINITY);
  distance[root] = 0;
  next->clear();
  next->set_bit(root);

  const double begin = get_time();
  int iterations = 0;
  for (VertexId active = 1; active > 0; ++iterations) {
    std::swap(now, next);
    next->clear();
    graph.hint(distance);
    active = graph.stream_edges<VertexId>(
        [&](Edge& edge) {
          const float reached = distance[edge.source] + length_of(edge, graph.edge_type);
          if (!write_min(&distance[edge.target], reached)) return 0;
          next->set_bit(edge.target);
          return 1;
        },
        now);
  }
  const double seconds = get_time() - begin;
  const VertexId count =
      graph.stream_vertices<VertexId>([&](VertexId v) { return distance[v] < INFINITY ? 1 : 0; });
  printf("%d vertices reached from %d by %d iterations in %.2f seconds\n", count, root, iterations,
         seconds);
  return 0;
}
