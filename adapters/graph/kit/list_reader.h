// ListReader: reads many lists of a graph at once, each to its place in the caller's arrays. The C
// interface and the Python module stand on it.
//
// Threads: a reader is one thread's. ReaderPool is any thread's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/graph/graph.h"
#include "adapters/semiext/list_loader.h"
#include "iomgr/base/mutex.h"

namespace graphlane::kit {

class ListReader final : public ListLoader::Sink {
 public:
  explicit ListReader(const Graph& graph)
      : loader_(std::make_unique<ListLoader>(
            graph, *this,
            std::min<uint64_t>(kInFlightBytesMax,
                               std::max<uint64_t>(graph.cache_bytes() / 8, kInFlightBytesMin)))) {}

  struct Wanted {
    EdgeSide side = EdgeSide::kOut;
    const uint64_t* vertices = nullptr;  // each below the graph's vertex count
    size_t count = 0;
    // where each list's numbers go, from the beginning of the arrays below
    const uint64_t* offsets = nullptr;
    uint32_t* neighbours = nullptr;
    // nullptr: not wanted. Else of a graph that was opened with weights
    double* weights = nullptr;
  };
  // After an error the reader gives no more lists.
  Outcome<void> read(const Wanted& wanted) {
    wanted_ = wanted;
    for (size_t i = 0; i < wanted.count; ++i) {
      loader_->ask({.running = static_cast<VertexId>(i),
                    .owner = static_cast<VertexId>(wanted.vertices[i]),
                    .side = wanted.side,
                    .weights = wanted.weights != nullptr});
      if (!loader_->has_room() || loader_->asked_count() >= kAskedMax) finish();
    }
    finish();
    if (loader_->error()) return *loader_->error();
    return {};
  }

 private:
  static constexpr uint64_t kInFlightBytesMin = 64 << 10;
  static constexpr uint64_t kInFlightBytesMax = 4 << 20;
  static constexpr size_t kAskedMax = 65536;

  void finish() {
    loader_->begin();
    while (loader_->wait()) {
    }
  }
  // `running` is the place among the wanted ones.
  void on_list(VertexId running, const ListView& view) override {
    const uint64_t at = wanted_.offsets[running];
    std::memcpy(wanted_.neighbours + at, view.neighbours.data(), view.neighbours.size_bytes());
    if (wanted_.weights == nullptr) return;
    if (view.weights.empty()) {
      std::fill_n(wanted_.weights + at, view.neighbours.size(), 1.0);
    } else {
      std::memcpy(wanted_.weights + at, view.weights.data(), view.weights.size_bytes());
    }
  }

  Wanted wanted_;
  std::unique_ptr<ListLoader> loader_;  // destroyed first: it may still give lists
};

// Idle readers of a graph: each has memory and a queue of its own.
class ReaderPool {
 public:
  explicit ReaderPool(const Graph& graph) : graph_(graph) {}

  // A reader that has failed is dropped.
  Outcome<void> read(const ListReader::Wanted& wanted) {
    std::unique_ptr<ListReader> reader = take();
    Outcome<void> done = reader->read(wanted);
    if (!done) return done;
    MutexLock lock(mu_);
    idle_.push_back(std::move(reader));
    return {};
  }

 private:
  std::unique_ptr<ListReader> take() {
    {
      MutexLock lock(mu_);
      if (!idle_.empty()) {
        std::unique_ptr<ListReader> reader = std::move(idle_.back());
        idle_.pop_back();
        return reader;
      }
    }
    return std::make_unique<ListReader>(graph_);
  }

  const Graph& graph_;
  Mutex mu_;
  std::vector<std::unique_ptr<ListReader>> idle_ GUARDED_BY(mu_);
};

// ERANGE: no vertex of the graph.
inline Outcome<void> check_vertex(const Graph& graph, uint64_t vertex) {
  if (vertex < graph.vertex_count()) return {};
  return make_error(ERANGE, "{}: has no vertex {}: its {} vertices begin with 0", graph.path(),
                    vertex, graph.vertex_count());
}

}  // namespace graphlane::kit
