#include "iomgr/cache/cache_policy.h"

#include "iomgr/base/memory_order.h"

namespace graphlane {
namespace {

// In misses, per way. Chosen by the traces of tests/iomgr/cache/cache_policy_test.cc: a
// shorter one of heat forgets what a sweep over four times the cache needs, a longer
// one keeps a working set that has gone.
constexpr uint32_t kHeatPeriod = 4;
constexpr uint32_t kProbationPeriod = 2;
// How long a protected frame may go without use while no use of such a one was seen, in
// misses, per way: a sweep over this many times the cache has its hits.
constexpr int32_t kIdleUnknown = 32;
// By what share of its time a frame must come back sooner, and by how much besides: threads that take the
// blocks of one sweep in turn, and what is read ahead of them, come now earlier, now later.
// Where most is hit, few misses go by in a sweep: there the share alone is hardly one.
constexpr int32_t kSoonerShare = 4;
int32_t much_sooner(uint32_t ways) { return static_cast<int32_t>(ways) / 2; }
// Ways on probation.
constexpr uint32_t kProbationMin = 1;
// Keys that hot-aware remembers: with more, what was hot once pushes out what is.
constexpr uint32_t kHotHistory = kCacheWaysMax;

// Visits the set bits of `ways`.
template <class Visit>
void for_each_way(uint32_t ways, Visit visit) {
  for (; ways != 0; ways &= ways - 1) visit(lowest(ways));
}

// Most of a set on probation is as good as LRU for what LRU is good for.
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
    case CachePolicy::kFifo:
      return;
    case CachePolicy::kHotAware:
      age_heat();
      heat_ = 1 + (forget(newcomer.key_hash, &value) ? value : 0);
      if (heat_ > kHeatMax) heat_ = kHeatMax;
      return;
    case CachePolicy::kScanResistant:
      age_probation();
      demote_idle();
      const bool known = forget(newcomer.key_hash, &value);
      judge(newcomer, known, value);
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

void SetPolicy::refused(uint32_t key_hash) const {
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

// A working set that has gone is no longer protected. History alone does not see this:
// in a sweep that is longer than it, nobody comes back sooner than anybody.
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
  // What takes their places may be used in another rhythm.
  if (demoted) view_.set.protected_reuse.store(0, relaxed);
}

// Whether the newcomer is protected, and who is no longer.
void SetPolicy::judge(const Newcomer& newcomer, bool known, uint32_t known_used) {
  CacheSet& set = view_.set;
  const uint32_t extra_max = probation_extra_max(view_.way_limit);
  if (set.probation_extra > extra_max) set.probation_extra = static_cast<uint8_t>(extra_max);
  uint32_t protected_now = protected_ways();
  const bool comes_back_sooner = known && protected_now != 0 &&
                                 age(known_used) + age(known_used) / kSoonerShare +
                                         much_sooner(view_.way_limit) <
                                     age(view_.slots[oldest(protected_now)].used.load(relaxed));
  // If what is protected is of no use, its place is enough.
  const bool all_in_use = set.protected_reuse.load(relaxed) != 0;
  if (comes_back_sooner && all_in_use && set.probation_extra < extra_max) ++set.probation_extra;
  const uint32_t on_probation = kProbationMin + set.probation_extra;
  const uint32_t room = view_.way_limit > on_probation ? view_.way_limit - on_probation : 0;
  uint32_t count = count_of(protected_now);
  if (count >= room && !comes_back_sooner) {
    const uint32_t give_way = known ? later_ways(protected_now, newcomer, age(known_used))
                                    : stale_ways(protected_now, newcomer.file_id_low);
    if (give_way != 0) {
      const uint32_t way = known ? last_in_file(give_way) : oldest(give_way);
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
    sooner = false;  // than that one
    view_.slots[way].heat.store(kOnProbation, relaxed);
    protected_now &= ~bit(way);
  }
}

// What one file has left behind, read once, when another is read for the first time. Within
// a file, or to a newcomer that is known, it has yet to show who comes back sooner.
uint32_t SetPolicy::stale_ways(uint32_t protected_ways, uint64_t file_id_low) const {
  return view_.ways_where(protected_ways, [&](const CacheSlot& slot) {
    return slot.heat.load(relaxed) == kProtected && slot.file_id[0].load(relaxed) != file_id_low &&
           age(slot.used.load(relaxed)) > static_cast<int32_t>(view_.way_limit);
  });
}

// What lies behind the newcomer, which is known, in the same file, and was not asked for much
// later than that: in a sweep it comes back no sooner. Who gives way misses its next hit, so not
// for every newcomer.
uint32_t SetPolicy::later_ways(uint32_t protected_ways, const Newcomer& newcomer,
                               int32_t away) const {
  if (age(view_.set.moved_up) < static_cast<int32_t>(view_.way_limit) / 2) return 0;
  return view_.ways_where(protected_ways, [&](const CacheSlot& slot) {
    return slot.frame_index.load(relaxed) > newcomer.frame_index &&
           slot.file_id[0].load(relaxed) == newcomer.file_id_low &&
           age(slot.used.load(relaxed)) > away / 2;
  });
}

// What history knows of the key, which it then forgets.
bool SetPolicy::forget(uint32_t key_hash, uint32_t* value) const {
  for (uint32_t entry = 0; entry < history_length(); ++entry) {
    if (view_.history.key_hash[entry] != key_hash) continue;
    view_.history.key_hash[entry] = 0;
    *value = view_.history.value[entry];
    return true;
  }
  return false;
}

// In misses of the set; right also when its clock has wrapped. Below 0 when hits have
// raced with each other and set the clock back.
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

// Of protected ones, where there is less room than there was: of the file that was not asked for for
// longest the last. Of that file, the oldest is what its sweep comes to next.
uint32_t SetPolicy::dispensable(uint32_t ways) const {
  const uint64_t file_id_low = view_.slots[oldest(ways)].file_id[0].load(relaxed);
  return last_in_file(view_.ways_where(ways, [&](const CacheSlot& slot) {
    return slot.file_id[0].load(relaxed) == file_id_low;
  }));
}

uint32_t SetPolicy::last_in_file(uint32_t ways) const {
  uint32_t found = lowest(ways);
  for_each_way(ways, [&](uint32_t way) {
    if (view_.slots[way].frame_index.load(relaxed) >
        view_.slots[found].frame_index.load(relaxed)) {
      found = way;
    }
  });
  return found;
}

// Of equals, the one that was asked for last.
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
