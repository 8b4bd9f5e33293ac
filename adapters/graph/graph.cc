#include "adapters/graph/graph.h"

#include <algorithm>
#include <new>

#include "graphfmt/sort/line.h"

namespace graphlane {
namespace {

// Bytes behind the end, for decoders that read more than they need.
constexpr uint64_t kBehindBytes = 64;
constexpr uint64_t kLoadBytes = 4 << 20;
static_assert(kLoadBytes % PageReader::kPageBytes == 0);

}  // namespace

// The checksums of one file's pages.
class Graph::Checker final : public PageChecker {
 public:
  Checker(const graphfmt::Lists& lists, graphfmt::Direction direction, graphfmt::ListPart part)
      : lists_(lists), direction_(direction), part_(part) {}
  bool is_sound(uint64_t page_index, std::span<const std::byte> bytes) const override {
    return lists_.is_sound_piece(direction_, part_, page_index,
                                 {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }

 private:
  const graphfmt::Lists& lists_;
  const graphfmt::Direction direction_;
  const graphfmt::ListPart part_;
};

Graph::Graph() = default;
Graph::~Graph() = default;

Outcome<std::unique_ptr<Graph>> Graph::open(const std::string& path, const GraphOptions& options) {
  return graphfmt::or_no_memory([&]() -> Outcome<std::unique_ptr<Graph>> {
    std::unique_ptr<Graph> graph(new Graph());
    graph->path_ = path;
    graph->options_ = options;
    auto lists = graphfmt::Lists::open(path);
    if (!lists) return lists.error();
    graph->lists_ = std::move(*lists);
    if (graph->lists_->piece_bytes() != PageReader::kPageBytes) {
      return make_error(ENOTSUP, "{}: has checksums of {} bytes each: only {} can be read", path,
                        graph->lists_->piece_bytes(), PageReader::kPageBytes);
    }
    if (!options.in_memory) {
      auto pages =
          PageReader::start({.budget_bytes = std::max(options.cache_bytes, kGraphCacheBytesMin),
                             .merges = options.variant.merge != Merge::kNone});
      if (!pages) return os_error(pages.error().code, path, "no memory for the page cache");
      graph->pages_ = std::move(*pages);
    }
    if (Outcome<void> opened = graph->open_side(graphfmt::Direction::kOut); !opened)
      return opened.error();
    if (graph->is_directed()) {
      if (Outcome<void> opened = graph->open_side(graphfmt::Direction::kIn); !opened)
        return opened.error();
    }
    return graph;
  });
}

Outcome<void> Graph::open_side(graphfmt::Direction direction) {
  Side& side = sides_[direction == graphfmt::Direction::kOut ? 0 : 1];
  side.index = &lists_->index(direction);
  side.weight_table = &lists_->weights(direction);
  const auto lists = open_file(direction, graphfmt::ListPart::kLists);
  if (!lists) return lists.error();
  side.lists = *lists;
  if (options_.weights && is_weighted()) {
    const auto weights = open_file(direction, graphfmt::ListPart::kWeights);
    if (!weights) return weights.error();
    side.weights = *weights;
  }
  if (!options_.in_memory) return {};
  const auto memory = load(*side.lists);
  if (!memory) return memory.error();
  side.lists_memory = *memory;
  if (side.weights != nullptr) {
    const auto weights = load(*side.weights);
    if (!weights) return weights.error();
    side.weights_memory = *weights;
  }
  return check_raw(side);
}

Outcome<OpenPagedFile*> Graph::open_file(graphfmt::Direction direction, graphfmt::ListPart part) {
  const std::string path = path_ + "/" + lists_->file_name(direction, part);
  const auto file = files_.open(path);
  if (!file) return file.error();
  const uint64_t expected = lists_->file_bytes(direction, part);
  if ((*file)->size_bytes() != expected) {
    return make_error(EIO, "{}: has {} bytes, expected {}", path, (*file)->size_bytes(), expected);
  }
  checkers_.push_back(std::make_unique<Checker>(*lists_, direction, part));
  (*file)->check_pages_by(*checkers_.back());
  return *file;
}

// Reads all of the file, and checks it.
Outcome<const std::byte*> Graph::load(const OpenPagedFile& file) {
  Outcome<graphfmt::Buffer> buffer =
      graphfmt::Buffer::allocate(round_up(file.size_bytes() + kBehindBytes, kBlockSize));
  if (!buffer) {
    return make_error(ENOMEM, "{}: no memory for its {} bytes", file.path(), file.size_bytes());
  }
  std::byte* const memory = buffer->as<std::byte>();
  struct Nothing {};
  const uint64_t size = file.size_bytes();
  const Outcome<void> loaded = graphfmt::for_each_index<Nothing>(
      graphfmt::usable_threads(0), (size + kLoadBytes - 1) / kLoadBytes,
      [&](size_t index, Nothing&) -> Outcome<void> {
        const uint64_t begin = index * kLoadBytes;
        const uint64_t end = std::min(begin + kLoadBytes, size);
        if (Outcome<void> read = file.read({begin, end - begin}, memory + begin); !read) {
          return read;
        }
        for (uint64_t at = begin; at < end; at += kBlockSize) {
          const uint64_t count = std::min(kBlockSize, end - at);
          if (file.paged().checker->is_sound(at / kBlockSize, {memory + at, count})) continue;
          return make_error(EIO, "{}: damaged between byte {} and byte {}: its checksum is wrong",
                            file.path(), at, at + count);
        }
        return {};
      });
  if (!loaded) return loaded.error();
  memory_.push_back(std::move(*buffer));
  return memory;
}

// Raw lists are used without decoding, so every neighbour is checked here: it must be a vertex.
Outcome<void> Graph::check_raw(const Side& side) const {
  if (codec().kind() != graphfmt::CodecKind::kRaw) return {};
  const auto* const list = reinterpret_cast<const VertexId*>(side.lists_memory);
  VertexId largest = 0;
  for (uint64_t i = 0; i < arc_count(); ++i) largest = std::max(largest, list[i]);
  if (arc_count() > 0 && largest >= vertex_count()) {
    return make_error(EIO, "{}: has a neighbour {}, of {} vertices", side.lists->path(), largest,
                      vertex_count());
  }
  return {};
}

}  // namespace graphlane
