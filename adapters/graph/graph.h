// Graph: a stored graph that is open for computing. Its index is in memory; its lists are on the
// devices, or, when asked for, in memory too.
//
//   GRAPH/graph            header (graphfmt/graph_header.h)
//   GRAPH/…                index, lists and weights by direction (graphfmt/lists/lists.h)
//                          each plain, or striped over a volume
//
// An undirected graph has one file of lists: both sides are the same.
//
// Threads: does not change once it is open; degree() and place() are any thread's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graphfmt/buffer.h"
#include "graphfmt/lists/lists.h"
#include "iomgr/base/error.h"
#include "iomgr/read/paged_files.h"

namespace graphlane {

using VertexId = uint32_t;
inline constexpr VertexId kNoVertex = 0xffffffff;

// Which lists: of a vertex's out-neighbours, of its in-neighbours, or one of each.
enum class EdgeSide : uint8_t { kOut = 0, kIn = 1, kBoth = 2 };

// Where reads of neighbouring lists become one: lists in the engine and pages in the page reader,
// pages only, or nowhere.
enum class Merge : uint8_t { kLists, kPages, kNone };

// For experiments: FlashGraph's figures 12 and 13. The defaults are the fastest.
struct ReadVariant {
  Merge merge = Merge::kLists;
  // lists are read by blocks of this size, a power of 2 from 4096 to 1 MiB
  uint32_t page_bytes = 4096;
  bool random_order = false;  // vertices run in a random order
};

struct GraphOptions {
  uint64_t cache_bytes = 64 << 20;  // of pages that were read, at least kCacheBytesMin
  bool in_memory = false;           // all lists are read at once and checked
  bool weights = false;             // wanted: those of a graph that has some
  ReadVariant variant = {};
};
inline constexpr uint64_t kGraphCacheBytesMin = 4 << 20;

class Graph {
 public:
  // Errors are one line that names the file. EIO: damaged; EINVAL: no graph; ENOTSUP: of another
  // format.
  static Outcome<std::unique_ptr<Graph>> open(const std::string& path, const GraphOptions& options);
  ~Graph();

  const std::string& path() const { return path_; }
  const graphfmt::GraphHeader& header() const { return lists_->header(); }
  VertexId vertex_count() const { return static_cast<VertexId>(header().vertex_count); }
  // Arcs in one direction's lists: of an undirected graph, each edge between two vertices is two.
  uint64_t arc_count() const { return header().arc_count; }
  bool is_directed() const { return header().is_directed; }
  bool is_weighted() const { return lists_->is_weighted(); }
  bool is_in_memory() const { return options_.in_memory; }
  uint64_t cache_bytes() const { return options_.cache_bytes; }
  const graphfmt::ListCodec& codec() const { return lists_->codec(); }
  const ReadVariant& variant() const { return options_.variant; }

  // Arcs of the vertex; kBoth: of both of a directed graph's. Reads no device.
  uint64_t degree(VertexId v, EdgeSide side) const {
    const uint64_t out_or_in = sides_[side_place(side)].index->degree(v);
    return side == EdgeSide::kBoth && is_directed() ? out_or_in + sides_[1].index->degree(v)
                                                    : out_or_in;
  }

  // ---- For the readers of lists

  // One direction's lists.
  struct Side {
    const graphfmt::ListIndex* index = nullptr;
    const graphfmt::WeightTable* weight_table = nullptr;  // where the weights of arcs are
    const OpenPagedFile* lists = nullptr;
    const OpenPagedFile* weights = nullptr;  // nullptr: none, or not wanted
    // of a graph in memory; 32 bytes may be read behind the end
    const std::byte* lists_memory = nullptr;
    const std::byte* weights_memory = nullptr;
  };
  const Side& side(EdgeSide side) const { return sides_[side_place(side)]; }
  PageReader& pages() const { return *pages_; }

  // The size of the direction's list file.
  uint64_t list_bytes(EdgeSide side) const { return this->side(side).lists->size_bytes(); }
  PagedFiles::Moved moved() const { return files_.moved(); }

 private:
  class Checker;

  size_t side_place(EdgeSide side) const { return side == EdgeSide::kIn && is_directed() ? 1 : 0; }

  Graph();
  Outcome<void> open_side(graphfmt::Direction direction);
  Outcome<OpenPagedFile*> open_file(graphfmt::Direction direction, graphfmt::ListPart part);
  Outcome<const std::byte*> load(const OpenPagedFile& file);
  Outcome<void> check_raw(const Side& side) const;

  std::string path_;
  GraphOptions options_;
  std::unique_ptr<graphfmt::Lists> lists_;
  std::vector<std::unique_ptr<Checker>> checkers_;
  std::unique_ptr<PageReader> pages_;
  PagedFiles files_;
  std::vector<graphfmt::Buffer> memory_;
  Side sides_[2];
};

}  // namespace graphlane
