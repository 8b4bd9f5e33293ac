// The unit to evict: from buffers (buffer_pool.h) and from packed units (packed_store.h) alike.
//
// A unit that no job wanted for kStaleRounds goes first, the oldest before others. Else the last
// unit in the graph goes. So the graph's begin stays, which the next sweep wants as much, and the
// rest is read from a device without gaps.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>

namespace graphlane::share {

inline constexpr uint64_t kStaleRounds = 2;  // GlobalTable::round()

// The victim among units for which may_go(unit) holds; end(): none. `wanted_in` is the member of
// Entry with the round in which a job last wanted the unit.
template <class Entry, class MayGo>
typename std::map<uint32_t, Entry>::iterator victim_of(std::map<uint32_t, Entry>& by_unit,
                                                       uint64_t Entry::* wanted_in, uint64_t round,
                                                       MayGo may_go) {
  auto last = by_unit.end();
  auto oldest = by_unit.end();
  for (auto at = by_unit.begin(); at != by_unit.end(); ++at) {
    if (!may_go(at->first)) continue;
    last = at;
    if (oldest == by_unit.end() || at->second.*wanted_in < oldest->second.*wanted_in) oldest = at;
  }
  const bool is_stale =
      oldest != by_unit.end() && oldest->second.*wanted_in + kStaleRounds <= round;
  return is_stale ? oldest : last;
}

}  // namespace graphlane::share
