// PackedStore: the units that a coordinator keeps packed, beside the buffers that jobs read.
//
// Those at the graph's begin stay (eviction.h): what lies behind is not kept in the place of what
// lies before.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "adapters/share/memory/packed_partition.h"

namespace graphlane::share {

class PackedStore {
 public:
  using Packed = std::shared_ptr<const PackedPartition>;

  // Null: it is not there. Who asks wants it in this round of the graph's (GlobalTable::round()).
  Packed find(uint32_t unit, uint64_t round);
  // If all may have so many bytes.
  void keep(uint32_t unit, Packed packed, uint64_t round, uint64_t budget_bytes);
  bool has(uint32_t unit) const { return entries_.contains(unit); }
  void drop(uint32_t unit);
  void clear();
  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Packed packed;
    uint64_t wanted_in = 0;  // the round in which somebody did
  };
  void erase(std::map<uint32_t, Entry>::iterator entry);

  std::map<uint32_t, Entry> entries_;
  uint64_t bytes_ = 0;
};

}  // namespace graphlane::share
