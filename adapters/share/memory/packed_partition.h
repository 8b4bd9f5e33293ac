// PackedPartition: a partition's bytes, packed (iomgr/cache/word_packing.h) while no job reads
// them. Jobs need the file's bytes, so it is unpacked into new memory, a hundred times as fast as a
// disk reads. While it is packed the kernel may reclaim its pages (iomgr/cache/page_note.h), before
// the OOM killer acts.
//
// Threads: immutable once made.
#pragma once

#include <memory>
#include <vector>

#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/cache/page_note.h"
#include "iomgr/cache/word_packing.h"

namespace graphlane::share {

class PackedPartition {
 public:
  // Packs sealed memory of `size_bytes`. Null: packing would save little, or there is no memory.
  static std::shared_ptr<const PackedPartition> pack(int memory, uint64_t size_bytes);

  // The memory that it takes.
  uint64_t bytes() const {
    return packed_.size() + groups_.size() * sizeof(PackedGroup) + notes_.size() * sizeof(PageNote);
  }

  // All bytes in new sealed memory. EAGAIN: the kernel has reclaimed pages, and this object is
  // useless.
  Outcome<Fd> unpack() const;

 private:
  Mapping packed_;  // the slices, then the rest that is not a whole group
  std::vector<PackedGroup> groups_;
  std::vector<uint64_t> begins_;  // of the slices and the rest in packed_
  std::vector<PageNote> notes_;
  uint64_t size_bytes_ = 0;
};

}  // namespace graphlane::share
