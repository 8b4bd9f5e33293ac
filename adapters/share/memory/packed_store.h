// PackedStore: the units that a coordinator keeps packed, beside the buffers that jobs read.
//
// Units at the graph's begin stay (eviction.h): a unit never replaces one that stands before it.
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

  // Null: not there. Marks it as wanted in this round (GlobalTable::round()).
  Packed find(uint32_t unit, uint64_t round);
  // Keeps the unit if all packed units fit `budget_bytes`, after evictions.
  void keep(uint32_t unit, Packed packed, uint64_t round, uint64_t budget_bytes);
  bool has(uint32_t unit) const { return entries_.contains(unit); }
  void drop(uint32_t unit);
  void clear();
  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Packed packed;
    uint64_t wanted_in = 0;  // the latest round in which find() asked for it
  };
  void erase(std::map<uint32_t, Entry>::iterator entry);

  std::map<uint32_t, Entry> entries_;
  uint64_t bytes_ = 0;
};

}  // namespace graphlane::share
