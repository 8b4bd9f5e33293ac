// ListRuns: whole lists that their own vertices ask for, merged while they are asked for.
//
//   vertices asked for   3 4 5   7 | 90 91 92 |          ascending, or descending
//   file    …  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ |  ▒▒▒▒▒▒▒ |  …       lists on the same page or on adjacent ones: one run
//
// A run costs one task of the page reader, and each list of it four bytes: a dense iteration asks
// for millions. RunReader gives the lists back, from the pages; those that lie behind one another
// on a page are decoded together.
//
// Threads: a worker's own.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "adapters/graph/graph.h"
#include "iomgr/read/page_bytes.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::semiext {

// The place of `vertex` in an index, from the place of `near`, or from the index where the two are
// far apart.
inline uint64_t offset_from(const graphfmt::ListIndex& index, uint64_t near, uint64_t near_offset,
                            uint64_t vertex) {
  constexpr uint64_t kNear = 16;
  uint64_t offset = near_offset;
  if (vertex >= near && vertex - near <= kNear) {
    for (; near < vertex; ++near) offset += index.bytes(static_cast<VertexId>(near));
    return offset;
  }
  if (vertex < near && near - vertex <= kNear) {
    for (; near > vertex; --near) offset -= index.bytes(static_cast<VertexId>(near - 1));
    return offset;
  }
  return index.offset(vertex);
}

// Of one direction's lists.
class ListRuns {
 public:
  // A range of this size keeps a core busy for long enough, and several fit into a small cache.
  static constexpr uint64_t kBytesMax = 256 << 10;

  struct Run {
    size_t first = 0;  // owners [first, end)
    size_t end = 0;
    uint64_t begin = 0;   // of its bytes in the file
    uint64_t behind = 0;  // the end of them
    uint64_t list_bytes = 0;
    bool descends = false;
  };

  // Adds the list of `owner`, which becomes a part of the last run or begins one. False: it is
  // empty, and there is no run; it was not added. `page_bytes` is a power of 2.
  bool add(const graphfmt::ListIndex& index, VertexId owner, uint64_t page_bytes);

  std::span<Run> runs() { return runs_; }
  size_t count() const { return runs_.size(); }
  size_t list_count() const { return owners_.size(); }
  uint64_t bytes() const { return bytes_; }
  // Ascending, but for empty lists.
  std::span<const VertexId> owners_of(const Run& run) const {
    return std::span(owners_).subspan(run.first, run.end - run.first);
  }
  // Call it once, before owners_of().
  void close();
  void clear();

 private:
  std::vector<Run> runs_;
  std::vector<VertexId> owners_;
  uint64_t bytes_ = 0;
  // The last list that was not empty: the next one is mostly beside it.
  uint64_t last_ = 0;
  uint64_t last_offset_ = 0;
};

inline bool ListRuns::add(const graphfmt::ListIndex& index, VertexId owner, uint64_t page_bytes) {
  const uint64_t length = index.bytes(owner);
  if (length == 0) {
    if (runs_.empty()) return false;
    owners_.push_back(owner);
    runs_.back().end = owners_.size();
    return true;
  }
  const uint64_t offset = offset_from(index, last_, last_offset_, owner);
  const uint64_t behind = offset + length;
  last_ = owner;
  last_offset_ = offset;
  bytes_ += length;
  owners_.push_back(owner);
  if (!runs_.empty()) {
    Run& run = runs_.back();
    const uint64_t one_page = page_bytes - 1;
    const bool is_single = run.end - run.first == 1;
    if (offset >= run.behind && (is_single || !run.descends) &&
        (offset & ~one_page) <= ((run.behind - 1) & ~one_page) + page_bytes &&
        behind - run.begin <= kBytesMax) {
      run.behind = behind;
      run.list_bytes += length;
      run.descends = false;
      run.end = owners_.size();
      return true;
    }
    if (behind <= run.begin && (is_single || run.descends) &&
        ((behind - 1) & ~one_page) + page_bytes >= (run.begin & ~one_page) &&
        run.behind - offset <= kBytesMax) {
      run.begin = offset;
      run.list_bytes += length;
      run.descends = true;
      run.end = owners_.size();
      return true;
    }
  }
  runs_.push_back({.first = owners_.size() - 1,
                   .end = owners_.size(),
                   .begin = offset,
                   .behind = behind,
                   .list_bytes = length});
  return true;
}

// Gives the lists of runs from their pages.
class RunReader {
 public:
  RunReader(const graphfmt::ListCodec& codec, uint64_t vertex_count)
      : codec_(codec),
        is_raw_(codec.kind() == graphfmt::CodecKind::kRaw),
        vertex_count_(vertex_count) {}

  // Calls give(owner, neighbours) for each of `owners`, ascending but for empty lists. `pages` hold
  // the file's bytes from `begin` on. False: a list is damaged, and none is given from it on.
  template <class Give>
  bool read(const graphfmt::ListIndex& index, std::span<const VertexId> owners, uint64_t begin,
            std::span<const PageBytes::Piece> pages, const Give& give);

  // The list that was damaged.
  VertexId damaged_owner() const { return damaged_owner_; }
  uint64_t damaged_offset() const { return damaged_offset_; }

 private:
  // lists that are decoded together: as many as a page can have
  static constexpr size_t kStretchMax = 4096;
  static constexpr size_t kNumbersMax = 16 << 10;  // of them
  static constexpr size_t kDecodeSlack = 32;       // bytes behind a list that decoders may read

  // Lists that lie behind one another on a page.
  struct Stretch {
    size_t count = 0;
    uint64_t bytes = 0;
    uint64_t numbers = 0;
  };

  Stretch stretch(const graphfmt::ListIndex& index, std::span<const VertexId> owners,
                  uint64_t room);
  bool decode(const Stretch& stretch, std::span<const std::byte> bytes, size_t slack_bytes);
  bool decode_one(std::span<const std::byte> bytes, uint64_t degree, size_t slack_bytes);
  std::span<const std::byte> copy(std::span<const PageBytes::Piece> pages, uint64_t page,
                                  uint64_t in_page, uint64_t length);
  bool fail(std::span<const VertexId> owners, uint64_t offset, const Stretch& stretch,
            std::span<const std::byte> bytes);

  const graphfmt::ListCodec& codec_;
  const bool is_raw_;
  const uint64_t vertex_count_;
  std::array<uint32_t, kStretchMax> lengths_{};
  std::array<uint32_t, kStretchMax> degrees_{};
  const VertexId* decoded_ = nullptr;  // the neighbours of the last stretch
  std::vector<VertexId> numbers_;
  std::vector<std::byte> copied_;
  VertexId damaged_owner_ = 0;
  uint64_t damaged_offset_ = 0;
};

template <class Give>
bool RunReader::read(const graphfmt::ListIndex& index, std::span<const VertexId> owners,
                     uint64_t begin, std::span<const PageBytes::Piece> pages, const Give& give) {
  uint64_t vertex = 0;  // its list begins at `offset`
  uint64_t offset = 0;
  while (!owners.empty()) {
    const VertexId owner = owners[0];
    const uint64_t length = index.bytes(owner);
    if (length == 0) {
      give(owner, {});
      owners = owners.subspan(1);
      continue;
    }
    offset = offset_from(index, vertex, offset, owner);
    const uint64_t page = offset / kBlockSize - begin / kBlockSize;
    const bool is_one_piece = pages.size() == 1;
    const uint64_t in_page = is_one_piece || page == 0 ? offset - begin : offset % kBlockSize;
    const PageBytes::Piece here = pages[is_one_piece ? 0 : page];
    Stretch lists = stretch(index, owners, here.size() - in_page);
    if (lists.count > 0) {
      if (!decode(lists, here.subspan(in_page, lists.bytes), here.size() - in_page - lists.bytes)) {
        return fail(owners, offset, lists, here.subspan(in_page, lists.bytes));
      }
      const VertexId* list = decoded_;
      for (size_t i = 0; i < lists.count; ++i) {
        const uint32_t degree = degrees_[i];
        give(owners[i], std::span<const VertexId>(list, degree));
        list += degree;
      }
    } else {
      // On several pages, or by itself more than a stretch.
      const uint64_t degree = index.degree(owner);
      const bool is_here = in_page + length <= here.size();
      const auto bytes =
          is_here ? here.subspan(in_page, length) : copy(pages, page, in_page, length);
      if (!decode_one(bytes, degree, is_here ? here.size() - in_page - length : kDecodeSlack)) {
        damaged_owner_ = owner;
        damaged_offset_ = offset;
        return false;
      }
      give(owner, std::span<const VertexId>(decoded_, degree));
      lists = {.count = 1, .bytes = length};
    }
    vertex = uint64_t{owners[lists.count - 1]} + 1;
    offset += lists.bytes;
    owners = owners.subspan(lists.count);
  }
  return true;
}

}  // namespace graphlane::semiext
