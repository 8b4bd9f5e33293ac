// Which unit makes room, of buffers (buffer_pool.h) as of what is kept packed (packed_store.h).
//
// The last one in the graph: its begin stays, which the next sweep wants as much, and the rest is
// read from a device in one go. But first what nobody wanted for kStaleRounds, the oldest of it.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>

namespace graphlane::share {

inline constexpr uint64_t kStaleRounds = 2;  // GlobalTable::round()

// Of those that may go; end(): none may. `wanted_in` is a member of Entry: the round in which
// somebody wanted it.
template <class Entry, class MayGo>
typename std::map<uint32_t, Entry>::iterator victim_of(std::map<uint32_t, Entry>& by_unit,
                                                      uint64_t Entry::*wanted_in, uint64_t round,
                                                      MayGo may_go) {
  auto last = by_unit.end();
  auto oldest = by_unit.end();
  for (auto at = by_unit.begin(); at != by_unit.end(); ++at) {
    if (!may_go(at->first)) continue;
    last = at;
    if (oldest == by_unit.end() || at->second.*wanted_in < oldest->second.*wanted_in) oldest = at;
  }
  const bool is_stale = oldest != by_unit.end() && oldest->second.*wanted_in + kStaleRounds <= round;
  return is_stale ? oldest : last;
}

}  // namespace graphlane::share
