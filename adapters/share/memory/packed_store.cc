#include "adapters/share/memory/packed_store.h"

#include <utility>

#include "adapters/share/schedule/eviction.h"

namespace graphlane::share {

PackedStore::Packed PackedStore::find(uint32_t unit, uint64_t round) {
  const auto found = entries_.find(unit);
  if (found == entries_.end()) return nullptr;
  found->second.wanted_in = round;
  return found->second.packed;
}

void PackedStore::erase(std::map<uint32_t, Entry>::iterator entry) {
  bytes_ -= entry->second.packed->bytes();
  entries_.erase(entry);
}

void PackedStore::keep(uint32_t unit, Packed packed, uint64_t round, uint64_t budget_bytes) {
  drop(unit);
  const uint64_t bytes = packed->bytes();
  entries_[unit] = {.packed = std::move(packed), .wanted_in = round};
  bytes_ += bytes;
  while (bytes_ > budget_bytes) {
    erase(victim_of(entries_, &Entry::wanted_in, round, [](uint32_t) { return true; }));
  }
}

void PackedStore::drop(uint32_t unit) {
  if (const auto found = entries_.find(unit); found != entries_.end()) erase(found);
}

void PackedStore::clear() {
  entries_.clear();
  bytes_ = 0;
}

}  // namespace graphlane::share
