#include "adapters/hybrid/dual_graph.h"

#include <algorithm>
#include <atomic>

#include "graphfmt/sort/line.h"

namespace graphlane::hybrid {
using graphfmt::Dual;
using graphfmt::DualPart;
using graphfmt::DualSide;
namespace {

uint64_t all_files_bytes(const Dual& dual) {
  uint64_t bytes = 0;
  for (const graphfmt::GraphHeader::File& file : dual.header().files) bytes += file.size_bytes;
  return bytes;
}

}  // namespace

// The checksums of one file's pages.
class DualGraph::Checker final : public PageChecker {
 public:
  Checker(const Dual& dual, DualSide side, DualPart part) : dual_(dual), side_(side), part_(part) {}
  bool is_sound(uint64_t page_index, std::span<const std::byte> bytes) const override {
    return dual_.is_sound_piece(side_, part_, page_index,
                                {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }

 private:
  const Dual& dual_;
  const DualSide side_;
  const DualPart part_;
};

DualGraph::~DualGraph() = default;

Outcome<std::unique_ptr<DualGraph>> DualGraph::open(const std::string& path,
                                                    const Options& options) {
  return graphfmt::or_no_memory([&]() -> Outcome<std::unique_ptr<DualGraph>> {
    std::unique_ptr<DualGraph> graph(new DualGraph());
    auto dual = Dual::open(path);
    if (!dual) return dual.error();
    graph->dual_ = std::move(*dual);
    const Dual& d = *graph->dual_;
    if (d.piece_bytes() != PageReader::kPageBytes) {
      return make_error(ENOTSUP, "{}: has checksums of {} bytes each: only {} can be read", path,
                        d.piece_bytes(), PageReader::kPageBytes);
    }
    graph->indexes_.resize(2 * d.geometry().block_count());
    // In memory, whole pages are kept of each.
    uint64_t index_bytes = d.index_bytes(DualSide::kOut) + d.geometry().block_count() * kBlockSize;
    if (d.is_directed()) {
      index_bytes += d.index_bytes(DualSide::kIn) + d.geometry().block_count() * kBlockSize;
    }
    uint64_t memory_bytes = options.memory_bytes;
    if (options.in_memory) {
      memory_bytes = 2 * index_bytes + all_files_bytes(d) / 8 * 9 + kCacheBytesMin;
    }
    graph->index_bytes_max_ = std::min(index_bytes, memory_bytes / 2);
    graph->keeps_indexes_ = graph->index_bytes_max_ == index_bytes;
    graph->cache_bytes_ = std::max(memory_bytes - graph->index_bytes_max_, kCacheBytesMin);
    auto pages = PageReader::start({.budget_bytes = graph->cache_bytes_});
    if (!pages) {
      return make_error(pages.error().code, "{}: no memory for a cache of {} bytes", path,
                        graph->cache_bytes_);
    }
    graph->pages_ = std::move(*pages);
    for (const DualSide side : {DualSide::kOut, DualSide::kIn}) {
      if (side == DualSide::kIn && !d.is_directed()) break;
      Side& s = graph->sides_[side == DualSide::kIn ? 1 : 0];
      const auto blocks = graph->open_file(side, DualPart::kBlocks);
      if (!blocks) return blocks.error();
      s.blocks = *blocks;
      if (!options.weights || !d.is_weighted()) continue;
      const auto weights = graph->open_file(side, DualPart::kWeights);
      if (!weights) return weights.error();
      s.weights = *weights;
    }
    return graph;
  });
}

Outcome<const OpenPagedFile*> DualGraph::open_file(DualSide side, DualPart part) {
  const std::string path = dual_->directory().path_of(dual_->file_name(side, part));
  auto file = files_.open(path);
  if (!file) return file.error();
  const uint64_t expected = dual_->file_bytes(side, part);
  if ((*file)->size_bytes() != expected) {
    return make_error(EIO, "{}: has {} bytes, expected {}", path, (*file)->size_bytes(), expected);
  }
  checkers_.push_back(std::make_unique<Checker>(*dual_, side, part));
  (*file)->check_pages_by(*checkers_.back());
  return *file;
}

Outcome<BlockIndexPtr> DualGraph::read_index(const BlockId& block) const {
  const OpenPagedFile& file = blocks(block.side);
  const ByteRange range = dual_->block(block.side, block.own, block.other).index;
  const uint64_t first = range.offset / kBlockSize * kBlockSize;
  const uint64_t end = std::min(round_up(range.end(), kBlockSize), file.size_bytes());
  auto pages = graphfmt::Buffer::allocate(round_up(end - first, kBlockSize));
  if (!pages) {
    return make_error(ENOMEM, "{}: no memory for an index of {} bytes", file.path(),
                      range.length_bytes);
  }
  if (auto read = file.read({first, end - first}, pages->data()); !read) return read.error();
  for (uint64_t at = first; at < end; at += kBlockSize) {
    const std::span<const std::byte> page(pages->as<std::byte>() + (at - first),
                                          std::min(kBlockSize, end - at));
    if (file.paged().checker->is_sound(at / kBlockSize, page)) continue;
    return make_error(EIO, "{}: damaged between byte {} and byte {}: its checksum is wrong",
                      file.path(), at, at + page.size());
  }
  auto read = std::make_shared<BlockIndex>();
  read->side = own_side(block.side);
  read->own = block.own;
  read->other = block.other;
  read->bytes = std::move(*pages);
  auto index = dual_->parse_index(
      block.side, block.own, block.other,
      {read->bytes.as<const uint8_t>() + (range.offset - first), range.length_bytes});
  if (!index) return index.error();
  read->index = std::move(*index);
  return BlockIndexPtr(std::move(read));
}

Outcome<void> DualGraph::load(std::span<const BlockId> blocks, WorkerPool& pool) {
  ++loads_;
  std::vector<BlockId> missing;
  for (const BlockId& block : blocks) {
    Slot& at = indexes_[slot(block)];
    at.used_at = loads_;
    if (!has_index(block)) missing.push_back(block);
  }
  if (missing.empty()) return {};
  std::vector<Outcome<BlockIndexPtr>> read(missing.size(), BlockIndexPtr());
  pool.for_blocks(missing.size(), 1, [&](uint64_t begin, uint64_t, unsigned) {
    read[begin] = graphfmt::or_no_memory([&] { return read_index(missing[begin]); });
  });
  for (size_t i = 0; i < missing.size(); ++i) {
    if (!read[i]) return read[i].error();
    Slot& at = indexes_[slot(missing[i])];
    if (at.index != nullptr) continue;  // was asked for twice
    at.index = std::move(*read[i]);
    index_bytes_ += at.index->bytes.size();
  }
  make_room();
  return {};
}

// Those that were used longest ago go, but none of the last load().
void DualGraph::make_room() {
  while (index_bytes_ > index_bytes_max_) {
    Slot* oldest = nullptr;
    for (Slot& at : indexes_) {
      if (at.index == nullptr || at.used_at == loads_) continue;
      if (oldest == nullptr || at.used_at < oldest->used_at) oldest = &at;
    }
    if (oldest == nullptr) return;
    index_bytes_ -= oldest->index->bytes.size();
    oldest->index.reset();
  }
}

}  // namespace graphlane::hybrid
