#include "iomgr/cache/cache_policy.h"

#include "iomgr/base/memory_order.h"

namespace graphlane {
namespace {

// In misses per way. Chosen by the traces of tests/iomgr/cache/cache_policy_test.cc. A shorter
// heat period forgets what a sweep over four times the cache needs. A longer one keeps a
// working set that is no longer used.
constexpr uint32_t kHeatPeriod = 4;
constexpr uint32_t kProbationPeriod = 2;
// How long a protected frame may stay idle while no reuse of one was seen, in misses per
// way. A sweep over this many times the cache still hits.
constexpr int32_t kIdleUnknown = 32;
// A newcomer is promoted if it comes back sooner by this share of its time, plus a constant.
// The margin is needed because threads that share a sweep, and prefetches, come out of order.
// Where most reads hit, a sweep has few misses, so the share alone is less than one.
constexpr int32_t kSoonerShare = 4;
int32_t sooner_margin(uint32_t ways) { return static_cast<int32_t>(ways) / 2; }
// Ways on probation.
constexpr uint32_t kProbationMin = 1;
// Keys that hot-aware remembers. With more, formerly hot frames evict hot ones.
constexpr uint32_t kHotHistory = kCacheWaysMax;

// Visits the set bits of `ways`.
template <class Visit>
void for_each_way(uint32_t ways, Visit visit) {
  for (; ways != 0; ways &= ways - 1) visit(lowest(ways));
}

// With most of a set on probation, the policy is as good as LRU where LRU is good.
uint32_t probation_extra_max(uint32_t ways) { return ways < 4 ? 0 : ways * 3 / 4 - 1; }

}  // namespace

const char* name_of(CachePolicy policy) {
  switch (policy) {
    case CachePolicy::kLru: return "lru";
    case CachePolicy::kFifo: return "fifo";
    case CachePolicy::kScanResistant: return "scan-resistant";
    case CachePolicy::kHotAware: return "hot-aware";
  }
  return "?";
}

Result<CachePolicy> parse_cache_policy(std::string_view name) {
  for (const CachePolicy policy : {CachePolicy::kLru, CachePolicy::kFifo,
                                   CachePolicy::kScanResistant, CachePolicy::kHotAware}) {
    if (name == name_of(policy)) return policy;
  }
  return Errno{EINVAL};
}

void SetPolicy::miss(const Newcomer& newcomer) {
  view_.set.clock.store(view_.set.clock.load(relaxed) + 1, relaxed);
  uint32_t value = 0;
  switch (policy_) {
    case CachePolicy::kLru:
    case CachePolicy::kFifo: return;
    case CachePolicy::kHotAware:
      age_heat();
      heat_ = 1 + (forget(newcomer.key_hash, &value) ? value : 0);
      if (heat_ > kHeatMax) heat_ = kHeatMax;
      return;
    case CachePolicy::kScanResistant:
      age_probation();
      demote_idle();
      const bool known = forget(newcomer.key_hash, &value);
      classify(newcomer, known, value);
      return;
  }
}

uint32_t SetPolicy::victim(uint32_t candidates) const {
  if (policy_ == CachePolicy::kHotAware) return coldest(candidates);
  if (policy_ == CachePolicy::kScanResistant) {
    const uint32_t on_probation = candidates & ~protected_ways();
    return on_probation != 0 ? oldest(on_probation) : dispensable(candidates);
  }
  return oldest(candidates);
}

uint32_t SetPolicy::unprotected(uint32_t candidates) const {
  return policy_ == CachePolicy::kScanResistant ? candidates & ~protected_ways() : candidates;
}

void SetPolicy::rejected(uint32_t key_hash) const {
  remember(key_hash, policy_ == CachePolicy::kHotAware ? heat_ : view_.set.clock.load(relaxed));
}

void SetPolicy::evicted(uint32_t way, uint32_t key_hash) const {
  const CacheSlot& slot = view_.slots[way];
  const bool hot = policy_ == CachePolicy::kHotAware;
  remember(key_hash, (hot ? slot.heat : slot.used).load(relaxed));
}

uint32_t SetPolicy::history_length() const {
  return policy_ == CachePolicy::kHotAware ? kHotHistory : kCacheHistoryMax;
}

void SetPolicy::remember(uint32_t key_hash, uint32_t value) const {
  if (policy_ == CachePolicy::kLru || policy_ == CachePolicy::kFifo) return;
  const uint32_t entry = view_.set.history_hand++ % history_length();
  view_.history.key_hash[entry] = key_hash;
  view_.history.value[entry] = value;
}

void SetPolicy::filled(uint32_t way) const {
  view_.slots[way].used.store(view_.set.clock.load(relaxed), relaxed);
  view_.slots[way].heat.store(heat_, relaxed);
}

void SetPolicy::age_heat() const {
  if (view_.set.clock.load(relaxed) % (kHeatPeriod * view_.way_count) != 0) return;
  for (uint32_t way = 0; way < view_.way_count; ++way) {
    view_.slots[way].heat.store(view_.slots[way].heat.load(relaxed) / 2, relaxed);
  }
  for (uint32_t& heat : view_.history.value) heat /= 2;
}

void SetPolicy::age_probation() const {
  CacheSet& set = view_.set;
  if (set.clock.load(relaxed) % (kProbationPeriod * view_.way_count) != 0) return;
  if (set.probation_hit.load(relaxed) == 0) set.probation_extra /= 2;
  set.probation_hit.store(0, relaxed);
  const uint16_t reuse = set.protected_reuse.load(relaxed);
  set.protected_reuse.store(static_cast<uint16_t>(reuse - reuse / 16), relaxed);
}

// Demotes a working set that is no longer used. History alone does not see this: in a sweep
// longer than the history no frame comes back sooner than another.
void SetPolicy::demote_idle() const {
  const int32_t ways = static_cast<int32_t>(view_.way_count);
  const int32_t reuse = view_.set.protected_reuse.load(relaxed);
  const int32_t idle_max = reuse == 0 ? kIdleUnknown * ways : 2 * (reuse + ways);
  bool demoted = false;
  for_each_way(protected_ways(), [&](uint32_t way) {
    if (age(view_.slots[way].used.load(relaxed)) <= idle_max) return;
    view_.slots[way].heat.store(kOnProbation, relaxed);
    demoted = true;
  });
  // The reuse time of the frames that replace them is unknown.
  if (demoted) view_.set.protected_reuse.store(0, relaxed);
}

// Decides whether the newcomer is protected, and which frame it demotes.
void SetPolicy::classify(const Newcomer& newcomer, bool known, uint32_t known_used) {
  CacheSet& set = view_.set;
  const uint32_t extra_max = probation_extra_max(view_.way_limit);
  if (set.probation_extra > extra_max) set.probation_extra = static_cast<uint8_t>(extra_max);
  uint32_t protected_now = protected_ways();
  const bool comes_back_sooner =
      known && protected_now != 0 &&
      age(known_used) + age(known_used) / kSoonerShare + sooner_margin(view_.way_limit) <
          age(view_.slots[oldest(protected_now)].used.load(relaxed));
  // If the protected frames are idle, the newcomer takes their place, and probation stays.
  const bool all_in_use = set.protected_reuse.load(relaxed) != 0;
  if (comes_back_sooner && all_in_use && set.probation_extra < extra_max) ++set.probation_extra;
  const uint32_t on_probation = kProbationMin + set.probation_extra;
  const uint32_t room = view_.way_limit > on_probation ? view_.way_limit - on_probation : 0;
  uint32_t count = count_of(protected_now);
  if (count >= room && !comes_back_sooner) {
    const uint32_t demotable = known ? later_ways(protected_now, newcomer, age(known_used))
                                     : stale_ways(protected_now, newcomer.file_id_low);
    if (demotable != 0) {
      const uint32_t way = known ? last_in_file(demotable) : oldest(demotable);
      view_.slots[way].heat.store(kOnProbation, relaxed);
      protected_now &= ~bit(way);
      --count;
      if (known) set.moved_up = set.clock.load(relaxed);
    }
  }
  if (comes_back_sooner || count < room) {
    heat_ = known ? kProven : kProtected;
    ++count;
  }
  for (bool sooner = comes_back_sooner; count > room && protected_now != 0; --count) {
    const uint32_t way = sooner ? oldest(protected_now) : dispensable(protected_now);
    sooner = false;  // proven against the oldest one only
    view_.slots[way].heat.store(kOnProbation, relaxed);
    protected_now &= ~bit(way);
  }
}

// Protected frames of other files that were used once, long ago. They give way to a newcomer
// without history only. Within a file, the reuse distance decides.
uint32_t SetPolicy::stale_ways(uint32_t protected_ways, uint64_t file_id_low) const {
  return view_.ways_where(protected_ways, [&](const CacheSlot& slot) {
    return slot.heat.load(relaxed) == kProtected && slot.file_id[0].load(relaxed) != file_id_low &&
           age(slot.used.load(relaxed)) > static_cast<int32_t>(view_.way_limit);
  });
}

// Protected frames behind a known newcomer in the same file, and used not much later: in a sweep
// they come back no sooner. A frame that gives way misses its next hit, so this is rate-limited.
uint32_t SetPolicy::later_ways(uint32_t protected_ways, const Newcomer& newcomer,
                               int32_t away) const {
  if (age(view_.set.moved_up) < static_cast<int32_t>(view_.way_limit) / 2) return 0;
  return view_.ways_where(protected_ways, [&](const CacheSlot& slot) {
    return slot.frame_index.load(relaxed) > newcomer.frame_index &&
           slot.file_id[0].load(relaxed) == newcomer.file_id_low &&
           age(slot.used.load(relaxed)) > away / 2;
  });
}

// Takes the key's value out of the history. False if the history has none.
bool SetPolicy::forget(uint32_t key_hash, uint32_t* value) const {
  for (uint32_t entry = 0; entry < history_length(); ++entry) {
    if (view_.history.key_hash[entry] != key_hash) continue;
    view_.history.key_hash[entry] = 0;
    *value = view_.history.value[entry];
    return true;
  }
  return false;
}

// In misses of the set; right also when its clock has wrapped. Negative when racing hits
// set the clock back.
int32_t SetPolicy::age(uint32_t used) const {
  return static_cast<int32_t>(view_.set.clock.load(relaxed) - used);
}

uint32_t SetPolicy::protected_ways() const {
  uint32_t ways = 0;
  for_each_way(view_.set.resident, [&](uint32_t way) {
    const FrameState state = view_.slots[way].load().state();
    const bool live = state == FrameState::kFilling || state == FrameState::kValid;
    if (live && view_.slots[way].heat.load(relaxed) != kOnProbation) ways |= bit(way);
  });
  return ways;
}

uint32_t SetPolicy::oldest(uint32_t ways) const {
  uint32_t found = lowest(ways);
  for_each_way(ways, [&](uint32_t way) {
    if (age(view_.slots[way].used.load(relaxed)) > age(view_.slots[found].used.load(relaxed))) {
      found = way;
    }
  });
  return found;
}

// The protected frame to demote when room shrinks: the last one of the least recently used
// file. That file's oldest frame is the one that its sweep reads next.
uint32_t SetPolicy::dispensable(uint32_t ways) const {
  const uint64_t file_id_low = view_.slots[oldest(ways)].file_id[0].load(relaxed);
  return last_in_file(view_.ways_where(
      ways, [&](const CacheSlot& slot) { return slot.file_id[0].load(relaxed) == file_id_low; }));
}

uint32_t SetPolicy::last_in_file(uint32_t ways) const {
  uint32_t found = lowest(ways);
  for_each_way(ways, [&](uint32_t way) {
    if (view_.slots[way].frame_index.load(relaxed) > view_.slots[found].frame_index.load(relaxed)) {
      found = way;
    }
  });
  return found;
}

// Among equals, the most recently used.
uint32_t SetPolicy::coldest(uint32_t ways) const {
  uint32_t found = lowest(ways);
  for_each_way(ways, [&](uint32_t way) {
    const CacheSlot& a = view_.slots[way];
    const CacheSlot& b = view_.slots[found];
    const uint32_t heat_a = a.heat.load(relaxed);
    const uint32_t heat_b = b.heat.load(relaxed);
    const bool younger = age(a.used.load(relaxed)) < age(b.used.load(relaxed));
    if (heat_a < heat_b || (heat_a == heat_b && younger)) found = way;
  });
  return found;
}

}  // namespace graphlane
