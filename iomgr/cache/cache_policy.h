// Which frame of a set makes room: the policies of the cache, each within one set.
//
//   LRU             the one that was not asked for for longest
//   FIFO            the one that was filled first
//   scan-resistant  LIRS (Jiang and Zhang, SIGMETRICS 2002) on the ways of a set:
//
//                     protected (15 … 4 ways)      on probation (1 … 12 ways)
//                     | P P P P P P P P P P P |    | n n n n n |  ◄── newcomers
//                          ▲         │ oldest           │ oldest
//                          │         └──► probation     ▼
//                          │                          history (256 keys, and when they
//                          └───── asked for again ────── were last asked for)
//
//                   A frame is protected when it comes back sooner than the oldest
//                   protected one was asked for: its reuse distance is the shorter, by more than
//                   the readers of one sweep come out of order. So
//                   is one that was never seen before, in the place of one of another
//                   file that was asked for once, a cache's time ago. In
//                   a cyclic sweep all distances are equal, so nothing moves, and what
//                   is protected is hit in every round: (ways - 1) / ways of what the
//                   best of all policies has. Of equals, those at the beginning of the
//                   file take the places of those behind them, so that what stays on the
//                   device is one piece: a disk takes as long to pass a frame as to read
//                   it; where there is less room than there was, those at its end go. Probation
//                   grows by a way whenever a frame comes back so although those
//                   protected are hit too, and halves while nothing on probation is, as two
//                   jobs that sweep one file at a distance need it (the idea of DLIRS, SYSTOR
//                   2018). What is protected but not used for twice as long as others are is
//                   not protected for ever.
//   hot-aware       MaiterStore §3.4: the one of least heat. Heat counts accesses, is
//                   remembered in the history, and is halved every 4 × ways misses. Of
//                   equals the youngest goes. The paper lets nothing in that is
//                   colder than all others; here it takes the place that the next such
//                   one gets, so that reads of one page by many callers are still one.
//
// Time is a set's own: it moves with its misses (under LRU also with its hits). So the
// pieces of one frame, read one after the other, are one use of it, not many.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>
#include <string_view>

#include "iomgr/base/memory_order.h"
#include "iomgr/base/result.h"
#include "iomgr/cache/cache_set.h"

namespace graphlane {

enum class CachePolicy { kLru, kFifo, kScanResistant, kHotAware };

// "lru", "fifo", "scan-resistant", "hot-aware".
const char* name_of(CachePolicy policy);
Result<CachePolicy> parse_cache_policy(std::string_view name);  // EINVAL for another name

inline constexpr uint32_t kHeatMax = 255;

// What `heat` says of a frame under scan-resistant.
enum FrameProtection : uint32_t { kOnProbation = 0, kProtected = 1, kProven = 2 };

// A hit; without the lock. Relaxed throughout: age and heat are estimates, and order
// nothing. Each stores only what changes, so that frames that everybody hits stay in
// everybody's processor cache.
inline void policy_hit(CachePolicy policy, CacheSet& set, CacheSlot& slot) {
  if (policy == CachePolicy::kFifo) return;
  const uint32_t now = set.clock.load(relaxed);
  if (policy == CachePolicy::kHotAware) {
    const uint32_t heat = slot.heat.load(relaxed);
    if (heat < kHeatMax) slot.heat.store(heat + 1, relaxed);
  }
  const int32_t since = static_cast<int32_t>(now - slot.used.load(relaxed));
  if (since <= 0) return;  // below: another hit has seen the clock later
  if (policy == CachePolicy::kLru) {
    set.clock.store(now + 1, relaxed);
    slot.used.store(now + 1, relaxed);
    return;
  }
  slot.used.store(now, relaxed);
  if (policy != CachePolicy::kScanResistant) return;
  const uint32_t protection = slot.heat.load(relaxed);
  if (protection == kProtected) slot.heat.store(kProven, relaxed);
  if (protection == kOnProbation) {
    set.probation_hit.store(1, relaxed);
  } else if (since > set.protected_reuse.load(relaxed)) {
    set.protected_reuse.store(static_cast<uint16_t>(since < UINT16_MAX ? since : UINT16_MAX),
                              relaxed);
  }
}

// What is missed.
struct Newcomer {
  uint32_t key_hash;  // not 0
  uint64_t file_id_low;
  uint64_t frame_index;
};

// What the holder of the lock asks of a policy. Of a miss, in this order: miss(),
// victim() and evicted() as often as it takes to find room, filled() or refused().
class SetPolicy {
 public:
  SetPolicy(CachePolicy policy, const SetView& view) : policy_(policy), view_(view) {}

  // Time goes on; what history says of the newcomer.
  void miss(const Newcomer& newcomer);
  // After miss(): whether no other newcomer will take its place.
  bool protects_newcomer() const {
    return policy_ != CachePolicy::kScanResistant || heat_ != kOnProbation;
  }
  // One of `candidates`, bit by bit, at least one: a way.
  uint32_t victim(uint32_t candidates) const;
  // Those of `candidates` that the policy does not protect.
  uint32_t unprotected(uint32_t candidates) const;
  // The newcomer gets no frame, but is remembered.
  void refused(uint32_t key_hash) const;
  // The way's frame makes room for another.
  void evicted(uint32_t way, uint32_t key_hash) const;
  // The newcomer is in this way.
  void filled(uint32_t way) const;

 private:
  uint32_t history_length() const;
  void remember(uint32_t key_hash, uint32_t value) const;
  void age_heat() const;
  void age_probation() const;
  void demote_idle() const;
  void judge(const Newcomer& newcomer, bool known, uint32_t known_used);
  uint32_t stale_ways(uint32_t protected_ways, uint64_t file_id_low) const;
  uint32_t later_ways(uint32_t protected_ways, const Newcomer& newcomer, int32_t away) const;
  bool forget(uint32_t key_hash, uint32_t* value) const;
  int32_t age(uint32_t used) const;
  uint32_t protected_ways() const;
  uint32_t oldest(uint32_t ways) const;
  uint32_t dispensable(uint32_t ways) const;
  uint32_t last_in_file(uint32_t ways) const;
  uint32_t coldest(uint32_t ways) const;

  const CachePolicy policy_;
  const SetView& view_;
  uint32_t heat_ = 0;  // of the newcomer
};

}  // namespace graphlane
