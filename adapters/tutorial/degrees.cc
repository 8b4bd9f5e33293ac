// degrees GRAPH: the distribution of distinct out-neighbour counts, as a vertex program.
#include <adapters/semiext/engine.h>

#include <cstdio>
#include <map>

using namespace graphlane;

struct Degrees {
  explicit Degrees(const Graph& graph) : degree(graph.vertex_count()) {}

  // Called once for each vertex: requests its list.
  void run(auto& ctx, VertexId v) { ctx.request_vertex(v, v, EdgeSide::kOut); }

  // Called when the list, in ascending order, is in memory.
  void run_on_vertex(auto&, VertexId v, const ListView& list) {
    VertexId last = kNoVertex;
    for (const VertexId u : list.neighbours) degree[v] += std::exchange(last, u) != u;
  }

  std::vector<uint32_t> degree;
};

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: degrees GRAPH\n", stderr), 2;
  const auto graph = Graph::open(argv[1], {.cache_bytes = 64 << 20});
  if (!graph) return std::fprintf(stderr, "degrees: %s\n", graph.error().text.c_str()), 1;

  WorkerPool pool(2);
  Degrees program(**graph);
  semiext::Engine<Degrees> engine(**graph, pool, program);
  engine.activate_all();
  if (const Outcome<void> done = engine.run(); !done) {
    return std::fprintf(stderr, "degrees: %s\n", done.error().text.c_str()), 1;
  }

  std::map<uint32_t, unsigned long> vertices;
  for (const uint32_t degree : program.degree) ++vertices[degree];
  for (const auto& [degree, count] : vertices) std::printf("%u %lu\n", degree, count);
}
