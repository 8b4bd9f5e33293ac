// grid_program: small programs that use all of GridGraph's interface that its own programs use.
// They stand in for these where GRIDGRAPH_SOURCE is not set.
//
//   grid_program components|levels|ranks|products GRID MEMORY_BYTES [ROOT]
#include "core/graph.hpp"

namespace {

// The number of weak components of a grid with each edge in both directions.
void components(Graph& graph) {
  BigVector<VertexId> lowest(graph.path + "/lowest", graph.vertices);
  graph.set_vertex_data_bytes(graph.vertices * long{sizeof(VertexId)});
  Bitmap* now = graph.alloc_bitmap();
  Bitmap* next = graph.alloc_bitmap();
  next->fill();
  VertexId active = graph.stream_vertices<VertexId>([&](VertexId v) {
    lowest[v] = v;
    return 1;
  });
  while (active > 0) {
    std::swap(now, next);
    next->clear();
    graph.hint(lowest);
    active = graph.stream_edges<VertexId>(
        [&](Edge& edge) {
          if (!write_min(&lowest[edge.target], lowest[edge.source])) return 0;
          next->set_bit(edge.target);
          return 1;
        },
        now);
  }
  printf("%d\n", graph.stream_vertices<VertexId>([&](VertexId v) { return lowest[v] == v; }));
  delete now;
  delete next;
}

// The number of vertices that the root reaches.
void levels(Graph& graph, VertexId root) {
  BigVector<VertexId> parent(graph.path + "/parent", graph.vertices);
  parent.fill(-1);
  parent[root] = root;
  Bitmap* now = graph.alloc_bitmap();
  Bitmap* next = graph.alloc_bitmap();
  next->set_bit(root);
  for (VertexId active = 1; active > 0;) {
    std::swap(now, next);
    next->clear();
    active = graph.stream_edges<VertexId>(
        [&](Edge& edge) {
          if (!cas(&parent[edge.target], -1, edge.source)) return 0;
          next->set_bit(edge.target);
          return 1;
        },
        now);
  }
  Bitmap* none = graph.alloc_bitmap();
  const std::function<long(Edge&)> one = [](Edge&) { return 1; };
  assert(graph.stream_edges<long>(one, none) == 0);
  printf("%d\n", graph.stream_vertices<VertexId>([&](VertexId v) { return parent[v] != -1; }));
  delete now;
  delete next;
  delete none;
}

// Ten rounds of PageRank into the file `rank`, by windows if the memory is small.
void ranks(Graph& graph) {
  BigVector<VertexId> degree(graph.path + "/degree", graph.vertices);
  BigVector<double> rank(graph.path + "/rank", graph.vertices);
  BigVector<double> sum(graph.path + "/sum", graph.vertices);
  graph.set_vertex_data_bytes(graph.vertices * long{2 * sizeof(double)});
  int window_count = 0;
  const auto load = [&](std::pair<VertexId, VertexId> range) {
    rank.load(range.first, range.second), sum.load(range.first, range.second);
  };
  const auto save = [&](std::pair<VertexId, VertexId>) { rank.save(), sum.save(); };
  degree.fill(0);
  const EdgeId edges = graph.stream_edges<EdgeId>(
      [&](Edge& edge) {
        write_add(&degree[edge.source], 1);
        return 1;
      },
      nullptr, 0, 0);
  assert(edges == graph.edges);
  graph.hint(rank, sum);
  graph.stream_vertices<int>(
      [&](VertexId v) {
        rank[v] = 1.0 / (degree[v] == 0 ? 1 : degree[v]);
        sum[v] = 0;
        return 0;
      },
      nullptr, 0, load, save);
  for (int i = 0; i < 10; ++i) {
    graph.hint(rank);
    graph.stream_edges<int>(
        [&](Edge& edge) {
          write_add(&sum[edge.target], rank[edge.source]);
          return 0;
        },
        nullptr, 0, 1,
        [&](std::pair<VertexId, VertexId> range) {
          rank.lock(range.first, range.second), ++window_count;
        },
        [&](std::pair<VertexId, VertexId> range) { rank.unlock(range.first, range.second); });
    graph.hint(rank, sum);
    graph.stream_vertices<int>(
        [&](VertexId v) {
          rank[v] = 0.15 + 0.85 * sum[v];
          if (i < 9 && degree[v] > 0) rank[v] /= degree[v];
          sum[v] = 0;
          return 0;
        },
        nullptr, 0, load, save);
  }
  rank.sync();
  double total = 0;
  for (VertexId v = 0; v < graph.vertices; ++v) total += rank[v];
  printf("%.6f in %d windows\n", total, window_count / 10);
}

// The sum over all edges of source × weight.
void products(Graph& graph) {
  assert(graph.edge_type == 1);
  printf("%.3f\n",
         graph.stream_edges<double>([](Edge& edge) { return edge.source * double{edge.weight}; }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string what = argv[1];
  Graph graph(argv[2]);
  graph.set_memory_bytes(atol(argv[3]));
  if (what == "components") components(graph);
  if (what == "levels") levels(graph, atoi(argv[4]));
  if (what == "ranks") ranks(graph);
  if (what == "products") products(graph);
  return 0;
}
