// PageGraph: lists of a graph of the format `pages`, many at once. The pages have no table of
// degrees: a list's length is known when it has been read.
//
// Threads: one call at a time; calls of several threads wait for one another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/kv/kv_graph.h"
#include "iomgr/base/mutex.h"

namespace graphlane::python {

class PageGraph {
 public:
  // `cache_bytes`: for values that were read, of both directions.
  static Outcome<std::unique_ptr<PageGraph>> open(const std::string& path, uint64_t cache_bytes,
                                                  bool in_memory);

  const graphfmt::GraphHeader& header() const { return graph_->pages().header(); }

  struct Lists {
    std::vector<uint64_t> offsets;  // of the vertices, and the end
    std::vector<uint32_t> neighbours;
    std::vector<double> weights;  // empty: not wanted
  };
  // ERANGE: one of the vertices is none.
  Outcome<void> read(graphfmt::Direction direction, std::span<const uint64_t> vertices,
                     bool weights, Lists& into);
  // Of all vertices, by one pass over the pages.
  Outcome<void> degrees(graphfmt::Direction direction, std::span<uint64_t> into);

 private:
  std::unique_ptr<kv::KvGraph> graph_;
  Mutex mu_;
  std::unique_ptr<kv::KvReader> readers_[2] GUARDED_BY(mu_);
};

}  // namespace graphlane::python
