// KvGraph: a graph of the format `pages` that is open for gets of adjacency lists by vertex.
//
// Threads: does not change once it is open; a ListReader is one thread's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/kv/kv_reader.h"
#include "graphfmt/pages/pages.h"

namespace graphlane::kv {

class KvGraph {
 public:
  // The cache's budget is shared by both directions if the in-lists are wanted.
  static Outcome<std::unique_ptr<KvGraph>> open(const std::string& path, const KvOptions& options,
                                                bool wants_in);

  const std::string& path() const { return pages_->path(); }
  const graphfmt::Pages& pages() const { return *pages_; }
  uint64_t vertex_count() const { return pages_->vertex_count(); }
  // kIn gives the out-lists where the graph is undirected or the in-lists are not wanted.
  KvStore& store(graphfmt::Direction direction) {
    return *stores_[direction == graphfmt::Direction::kIn && stores_[1] ? 1 : 0];
  }
  bool has_in() const { return stores_[1] != nullptr; }
  PagedFiles::Moved moved() const;

  // The neighbours, decoded where they are not raw, and their weights. EIO names the vertex.
  struct List {
    std::span<const uint32_t> neighbours;
    graphfmt::ValueWeights weights;
  };
  Outcome<List> decode(uint64_t vertex, std::span<const uint8_t> value,
                       std::vector<uint32_t>& scratch) const;
  // The weight of the neighbour `i` of a list.
  double weight(const List& list, size_t i) const;

 private:
  std::unique_ptr<graphfmt::Pages> pages_;
  std::unique_ptr<KvStore> stores_[2];
};

}  // namespace graphlane::kv
