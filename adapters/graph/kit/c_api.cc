// The C interface over Graph and ListLoader. No exception crosses it.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "adapters/graph/graph.h"
#include "adapters/graph/kit/graphlane_graph.h"
#include "adapters/semiext/list_loader.h"
#include "iomgr/base/mutex.h"

using graphlane::EdgeSide;
using graphlane::Error;
using graphlane::Graph;
using graphlane::ListLoader;
using graphlane::ListView;
using graphlane::make_error;
using graphlane::Outcome;
using graphlane::VertexId;

namespace graphlane::kit {

constexpr uint64_t kReaderBytesMax = 4 << 20;
thread_local std::string last_graph_error;

int graph_failed(const Error& error) {
  last_graph_error = error.text;
  return error.code;
}

EdgeSide edge_side(graphlane_side side) { return side == GRAPHLANE_IN ? EdgeSide::kIn : EdgeSide::kOut; }

// Puts each list at the caller's place: `running` is the request's number.
class ListReader final : public ListLoader::Sink {
 public:
  explicit ListReader(const Graph& graph)
      : loader_(std::make_unique<ListLoader>(
            graph, *this, std::min<uint64_t>(kReaderBytesMax, std::max<uint64_t>(graph.cache_bytes() / 8, 64 << 10)))) {}

  Outcome<void> read(EdgeSide side, const uint64_t* vertices, size_t count, const uint64_t* offsets, uint32_t* list) {
    offsets_ = offsets;
    list_ = list;
    for (size_t i = 0; i < count; ++i) {
      loader_->ask({.running = static_cast<VertexId>(i), .owner = static_cast<VertexId>(vertices[i]), .side = side});
      if (!loader_->has_room() || loader_->asked_count() >= 65536) finish();
    }
    finish();
    if (loader_->error()) return *loader_->error();
    return {};
  }

 private:
  void finish() {
    loader_->begin();
    while (loader_->wait()) {
    }
  }
  void on_list(VertexId running, const ListView& view) override {
    std::memcpy(list_ + offsets_[running], view.neighbours.data(), view.neighbours.size_bytes());
  }

  const uint64_t* offsets_ = nullptr;
  uint32_t* list_ = nullptr;
  std::unique_ptr<ListLoader> loader_;  // ends first: it may tell of lists
};

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
using graphlane::kit::ListReader;

struct graphlane_graph {
  std::unique_ptr<Graph> graph;
  graphlane::Mutex mu;
  // Idle readers: each has memory and a queue of its own.
  std::vector<std::unique_ptr<ListReader>> readers GUARDED_BY(mu);

  std::unique_ptr<ListReader> take_reader() {
    {
      graphlane::MutexLock lock(mu);
      if (!readers.empty()) {
        std::unique_ptr<ListReader> reader = std::move(readers.back());
        readers.pop_back();
        return reader;
      }
    }
    return std::make_unique<ListReader>(*graph);
  }
  void give_back(std::unique_ptr<ListReader> reader) {
    graphlane::MutexLock lock(mu);
    readers.push_back(std::move(reader));
  }

  Outcome<void> check_vertex(uint64_t vertex) const {
    if (vertex < graph->vertex_count()) return {};
    return make_error(ERANGE, "{}: has no vertex {}: its {} vertices begin with 0", graph->path(), vertex,
                      graph->vertex_count());
  }
  // A reader that has failed gives no more lists, and is dropped.
  Outcome<void> read(EdgeSide side, const uint64_t* vertices, size_t count, const uint64_t* offsets, uint32_t* list) {
    std::unique_ptr<ListReader> reader = take_reader();
    Outcome<void> done = reader->read(side, vertices, count, offsets, list);
    if (done) give_back(std::move(reader));
    return done;
  }
};

extern "C" {

int graphlane_graph_open(const char* path, const graphlane_graph_options* options, graphlane_graph** graph) {
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
    *graph = made.release();
    return {};
  });
}

void graphlane_graph_close(graphlane_graph* graph) { delete graph; }
const char* graphlane_graph_error(void) { return last_graph_error.c_str(); }

uint64_t graphlane_graph_vertex_count(const graphlane_graph* graph) { return graph->graph->vertex_count(); }
uint64_t graphlane_graph_arc_count(const graphlane_graph* graph) { return graph->graph->arc_count(); }
int graphlane_graph_is_directed(const graphlane_graph* graph) { return graph->graph->is_directed() ? 1 : 0; }

uint64_t graphlane_graph_degree(const graphlane_graph* graph, graphlane_side side, uint64_t vertex) {
  if (vertex >= graph->graph->vertex_count()) return 0;
  return graph->graph->degree(static_cast<VertexId>(vertex), edge_side(side));
}

int graphlane_graph_neighbors(graphlane_graph* graph, graphlane_side side, uint64_t vertex, uint32_t* list,
                              uint64_t capacity, uint64_t* count) {
  uint64_t offsets[2] = {};
  const int error = graphlane_graph_multi_neighbors(graph, side, &vertex, 1, offsets, list, capacity);
  *count = offsets[1];
  return error;
}

int graphlane_graph_multi_neighbors(graphlane_graph* graph, graphlane_side side, const uint64_t* vertices, size_t count,
                                    uint64_t* offsets, uint32_t* list, uint64_t capacity) {
  return guarded([&]() -> Outcome<void> {
    offsets[0] = 0;
    for (size_t i = 0; i < count; ++i) {
      if (Outcome<void> checked = graph->check_vertex(vertices[i]); !checked) return checked;
      offsets[i + 1] = offsets[i] + graphlane_graph_degree(graph, side, vertices[i]);
    }
    if (list == nullptr && capacity == 0) return {};
    if (offsets[count] > capacity) {
      return make_error(ENOSPC, "{}: these lists have {} neighbours: there is room for {}", graph->graph->path(),
                        offsets[count], capacity);
    }
    return graph->read(edge_side(side), vertices, count, offsets, list);
  });
}

}  // extern "C"
