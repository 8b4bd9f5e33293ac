// Which frame of a set is evicted: the policies of the cache, each within one set.
//
//   LRU             the least recently used
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
//
//                   Promotion: a newcomer is protected when its reuse distance is shorter
//                   than the age of the oldest protected frame. A margin allows for the
//                   readers of one sweep, which come out of order. A newcomer without
//                   history may replace a frame of another file that was used once, long
//                   ago.
//
//                   Cyclic sweeps: all distances are equal, so nothing moves. The protected
//                   frames hit in every round: (ways - 1) / ways of the optimum. Among
//                   equals, frames at the beginning of the file replace later ones. So the
//                   part that misses is one piece, because a disk takes as long to skip a
//                   frame as to read it. When room shrinks, the last frames go first.
//
//                   Probation grows by a way when a frame is promoted although the
//                   protected ones hit too. It halves while nothing on probation hits. Two
//                   jobs that sweep one file at a distance need this (DLIRS, SYSTOR 2018).
//                   A protected frame is demoted when it is idle for twice the usual reuse
//                   time.
//
//   hot-aware       MaiterStore §3.4: the one of least heat. Heat counts accesses, is
//                   remembered in the history, and is halved every 4 × ways misses. Among
//                   equals the youngest goes. The paper rejects a newcomer that is colder
//                   than all frames. Here it gets a frame that the next such one takes, so
//                   that many callers that read one page cause one read.
//
// Time is per set: its clock counts misses (under LRU also hits). So the pieces of one
// frame, read one after the other, count as one use.
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

// The meaning of `heat` under scan-resistant.
enum FrameProtection : uint32_t { kOnProbation = 0, kProtected = 1, kProven = 2 };

// Records a hit; without the lock. Relaxed throughout: age and heat are estimates, and order
// nothing. Stores only values that change, so that a frame with many readers stays in every
// processor's cache.
inline void policy_hit(CachePolicy policy, CacheSet& set, CacheSlot& slot) {
  if (policy == CachePolicy::kFifo) return;
  const uint32_t now = set.clock.load(relaxed);
  if (policy == CachePolicy::kHotAware) {
    const uint32_t heat = slot.heat.load(relaxed);
    if (heat < kHeatMax) slot.heat.store(heat + 1, relaxed);
  }
  const int32_t since = static_cast<int32_t>(now - slot.used.load(relaxed));
  if (since <= 0) return;  // below 0: another hit saw a later clock
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

// The key of a miss.
struct Newcomer {
  uint32_t key_hash;  // not 0
  uint64_t file_id_low;
  uint64_t frame_index;
};

// A policy's decisions for one set; the caller holds its lock. Per miss, in this order:
// miss(), then victim() and evicted() until there is room, then filled() or rejected().
class SetPolicy {
 public:
  SetPolicy(CachePolicy policy, const SetView& view) : policy_(policy), view_(view) {}

  // Advances the clock and looks the newcomer up in the history.
  void miss(const Newcomer& newcomer);
  // After miss(): whether the policy protects the newcomer from eviction.
  bool protects_newcomer() const {
    return policy_ != CachePolicy::kScanResistant || heat_ != kOnProbation;
  }
  // The way to evict, of `candidates` (a bit set, not empty).
  uint32_t victim(uint32_t candidates) const;
  // The `candidates` that the policy does not protect.
  uint32_t unprotected(uint32_t candidates) const;
  // The newcomer gets no frame; the history keeps its key.
  void rejected(uint32_t key_hash) const;
  // The way's frame is evicted.
  void evicted(uint32_t way, uint32_t key_hash) const;
  // The newcomer is in this way.
  void filled(uint32_t way) const;

 private:
  uint32_t history_length() const;
  void remember(uint32_t key_hash, uint32_t value) const;
  void age_heat() const;
  void age_probation() const;
  void demote_idle() const;
  void classify(const Newcomer& newcomer, bool known, uint32_t known_used);
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
