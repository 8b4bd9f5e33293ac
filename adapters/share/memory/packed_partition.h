// PackedPartition: a partition's bytes in fewer (iomgr/cache/word_packing.h), kept by the coordinator while
// nobody reads it. Jobs want it as it is in the file: it is unpacked into memory of its own again, a
// hundred times as fast as a disk would bring it. Until then the kernel may take its pages
// (iomgr/cache/page_note.h), before anybody is killed for want of memory.
//
// Threads: what has been made is constant.
#pragma once

#include <memory>
#include <vector>

#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/cache/page_note.h"
#include "iomgr/cache/word_packing.h"

namespace graphlane::share {

class PackedPartition {
 public:
  // Of sealed memory of so many bytes. Null: it would hardly take less, or there is no memory.
  static std::shared_ptr<const PackedPartition> pack(int memory, uint64_t size_bytes);

  // What it takes.
  uint64_t bytes() const {
    return packed_.size() + groups_.size() * sizeof(PackedGroup) + notes_.size() * sizeof(PageNote);
  }

  // All of it, in new sealed memory. EAGAIN: the kernel has taken some of it, and it is of no use.
  Outcome<Fd> unpack() const;

 private:
  Mapping packed_;  // slice by slice, and behind them what is no whole group
  std::vector<PackedGroup> groups_;
  std::vector<uint64_t> begins_;  // of the slices in packed_; and of what is behind them
  std::vector<PageNote> notes_;
  uint64_t size_bytes_ = 0;
};

}  // namespace graphlane::share
