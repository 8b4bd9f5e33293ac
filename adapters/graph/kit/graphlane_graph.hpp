// C++ over graphlane_graph.h: errors are exceptions, lists are vectors.
//
// Vertex programs include <graphlane/adapters/semiext/engine.h> instead (C++20).
#ifndef GRAPHLANE_GRAPH_HPP
#define GRAPHLANE_GRAPH_HPP

#include <graphlane_graph.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace graphlane {

class GraphError : public std::runtime_error {
 public:
  GraphError(int error_code, const char* what) : std::runtime_error(what), code(error_code) {}
  const int code;  // an errno
};

class GraphReader {
 public:
  explicit GraphReader(const std::string& path, const graphlane_graph_options& options = {}) {
    graphlane_graph* graph = nullptr;
    check(graphlane_graph_open(path.c_str(), &options, &graph));
    graph_.reset(graph);
  }

  uint64_t vertex_count() const { return graphlane_graph_vertex_count(graph_.get()); }
  uint64_t arc_count() const { return graphlane_graph_arc_count(graph_.get()); }
  bool is_directed() const { return graphlane_graph_is_directed(graph_.get()) != 0; }
  uint64_t degree(uint64_t vertex, graphlane_side side = GRAPHLANE_OUT) const {
    return graphlane_graph_degree(graph_.get(), side, vertex);
  }

  std::vector<uint32_t> neighbors(uint64_t vertex, graphlane_side side = GRAPHLANE_OUT) const {
    std::vector<uint32_t> list(degree(vertex, side));
    uint64_t count = 0;
    check(graphlane_graph_neighbors(graph_.get(), side, vertex, list.data(), list.size(), &count));
    return list;
  }

  // The list of vertices[i] is list[offsets[i]] … list[offsets[i + 1] - 1].
  struct Many {
    std::vector<uint64_t> offsets;
    std::vector<uint32_t> list;
  };
  Many multi_neighbors(const std::vector<uint64_t>& vertices, graphlane_side side = GRAPHLANE_OUT) const {
    Many many;
    many.offsets.resize(vertices.size() + 1);
    check(graphlane_graph_multi_neighbors(graph_.get(), side, vertices.data(), vertices.size(), many.offsets.data(),
                                          nullptr, 0));
    many.list.resize(many.offsets.back());
    check(graphlane_graph_multi_neighbors(graph_.get(), side, vertices.data(), vertices.size(), many.offsets.data(),
                                          many.list.data(), many.list.size()));
    return many;
  }

 private:
  static void check(int error) {
    if (error != 0) throw GraphError(error, graphlane_graph_error());
  }
  struct Close {
    void operator()(graphlane_graph* graph) const { graphlane_graph_close(graph); }
  };
  std::unique_ptr<graphlane_graph, Close> graph_;
};

}  // namespace graphlane

#endif
