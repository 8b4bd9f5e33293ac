#include "iomgr/cache/cache.h"

#include <climits>
#include <cstring>

#include "iomgr/base/memory_order.h"

namespace graphlane {
namespace {

// Fibonacci hashing: the upper half depends on all of x, and consecutive x lie far apart.
uint32_t scatter(uint64_t x) { return static_cast<uint32_t>(x * 0x9e3779b97f4a7c15 >> 32); }

// Processors divide 32 bits several times faster than 64.
uint64_t divide(uint64_t a, uint32_t b) {
  return a >> 32 == 0 ? static_cast<uint32_t>(a) / b : a / b;
}

uint32_t hash_key(uint64_t file_id_low, uint64_t generation, uint64_t frame_index) {
  // File-ids are random already; generations and indices are small.
  return scatter((file_id_low ^ generation << 40) + frame_index) | 1;
}

template <class P>
bool holds(const CacheSlot& slot, const P& place) {
  // Acquire, and written with release: a thread that sees a newer key also sees the version
  // written before it, and so pins nothing (cache_set.h).
  return slot.frame_index.load(std::memory_order_acquire) == place.frame_index &&
         slot.file_id[0].load(std::memory_order_acquire) == place.file_id[0] &&
         slot.file_id[1].load(std::memory_order_acquire) == place.file_id[1] &&
         slot.generation.load(std::memory_order_acquire) == place.generation &&
         slot.epoch.load(std::memory_order_acquire) == place.epoch;
}

// Whether the slot holds this frame in an older generation.
template <class P>
bool superseded(const CacheSlot& slot, const P& place) {
  return slot.frame_index.load(relaxed) == place.frame_index &&
         slot.file_id[0].load(relaxed) == place.file_id[0] &&
         slot.file_id[1].load(relaxed) == place.file_id[1] &&
         slot.generation.load(relaxed) < place.generation;
}

// Pins the frame if the slot holds it and it is valid, or filling where `filling` allows it.
// `pinned` is the word before.
template <class P>
bool pin(CacheSlot& slot, const P& place, bool filling, FrameWord* pinned) {
  FrameWord word = slot.load();
  for (;;) {
    const bool useful =
        word.state() == FrameState::kValid || (filling && word.state() == FrameState::kFilling);
    if (!useful || word.doomed() || word.pins() == FrameWord::kPinsMask) return false;
    if (!holds(slot, place)) return false;
    // Acquire: sees the published bytes.
    if (slot.word.compare_exchange_weak(word.bits, word.bits + 1, std::memory_order_acquire,
                                        std::memory_order_acquire)) {
      *pinned = word;
      return true;
    }
  }
}

uint32_t sets_for(uint64_t frame_count) {
  return static_cast<uint32_t>((frame_count + kCacheWaysMax - 1) / kCacheWaysMax);
}

}  // namespace

// ---- memory

size_t FrameCache::metadata_bytes(uint64_t frame_count) {
  return sizeof(Header) + sets_for(frame_count) * (sizeof(CacheSet) + sizeof(CacheHistory)) +
         frame_count * sizeof(CacheSlot);
}

Result<void> FrameCache::init(const CacheOptions& options, std::span<std::byte> frames,
                              std::span<std::byte> metadata) {
  if (options.frame_bytes == 0 || options.frame_bytes % kBlockSize != 0 ||
      options.frame_bytes > kFrameBytesMax) {
    return Errno{EINVAL};
  }
  const uint64_t frame_count = frames.size() / options.frame_bytes;
  const auto unaligned =
      reinterpret_cast<uintptr_t>(frames.data()) | reinterpret_cast<uintptr_t>(metadata.data());
  if (frame_count == 0 || frame_count > INT32_MAX || unaligned % kBlockSize != 0 ||
      metadata.size() < metadata_bytes(frame_count)) {
    return Errno{EINVAL};
  }
  policy_ = options.policy;
  frame_bytes_ = options.frame_bytes;
  frame_count_ = static_cast<uint32_t>(frame_count);
  set_count_ = sets_for(frame_count);
  ways_ = frame_count_ / set_count_;
  larger_sets_ = frame_count_ % set_count_;
  frames_ = frames.data();
  owner_ = options.owner;
  header_ = reinterpret_cast<Header*>(metadata.data());
  sets_ = reinterpret_cast<CacheSet*>(header_ + 1);
  histories_ = reinterpret_cast<CacheHistory*>(sets_ + set_count_);
  slots_ = reinterpret_cast<CacheSlot*>(histories_ + set_count_);
  return resize(options.budget_bytes == 0 ? frames.size() : options.budget_bytes);
}

uint32_t FrameCache::first_frame(uint32_t set_index) const {
  return set_index * ways_ + (set_index < larger_sets_ ? set_index : larger_sets_);
}

uint32_t FrameCache::set_of(uint32_t frame) const {
  const uint32_t in_larger = larger_sets_ * (ways_ + 1);
  if (frame < in_larger) return frame / (ways_ + 1);
  return larger_sets_ + (frame - in_larger) / ways_;
}

// The set's share of the budget.
uint32_t FrameCache::way_limit(uint32_t set_index) const {
  // Relaxed: resize() takes every set's lock after the change.
  const uint32_t budget = budget_frames_.load(relaxed);
  return budget / set_count_ + (set_index < budget % set_count_ ? 1 : 0);
}

SetView FrameCache::view(uint32_t set_index) const {
  return {.set_index = set_index,
          .set = sets_[set_index],
          .history = histories_[set_index],
          .slots = slots_ + first_frame(set_index),
          .way_count = ways_ + (set_index < larger_sets_ ? 1 : 0),
          .way_limit = 0};
}

FrameCache::Counters& FrameCache::counters(uint32_t set_index) const {
  return header_->counters[set_index % kCounterShards];
}

std::atomic<uint32_t>& FrameCache::epoch_of(uint64_t file_id_low) const {
  return header_->epochs[file_id_low % kEpochCount];  // file-ids are random
}

FrameCache::Place FrameCache::locate(const FrameKey& key) const {
  Place place;
  std::memcpy(place.file_id, key.file_id.bytes.data(), sizeof place.file_id);
  place.generation = key.generation;
  place.frame_index = key.frame_index;
  // Acquire: a key made after a drop() sees the change that caused the drop.
  place.epoch = epoch_of(place.file_id[0]).load(std::memory_order_acquire);
  const uint64_t row = divide(key.frame_index, set_count_);
  const uint64_t column = key.frame_index - row * set_count_;
  const uint64_t turn = scatter(place.file_id[1] + row);
  const uint64_t set_index = column + (turn * set_count_ >> 32);
  place.set_index =
      static_cast<uint32_t>(set_index < set_count_ ? set_index : set_index - set_count_);
  place.key_hash = hash_key(place.file_id[0], place.generation, place.frame_index);
  return place;
}

// ---- finding

Pin FrameCache::pin_valid(const Place& place) {
  const SetView set = view(place.set_index);
  for (uint32_t ways = set.ways_tagged(place.tag()); ways != 0; ways &= ways - 1) {
    CacheSlot& slot = set.slots[lowest(ways)];
    FrameWord word;
    if (!pin(slot, place, false, &word)) continue;
    return Pin(this, static_cast<uint32_t>(&slot - slots_), word.version());
  }
  return {};
}

Pin FrameCache::find(const FrameKey& key) {
  const Place place = locate(key);
  Pin found = pin_valid(place);
  if (!found) return found;
  CacheSet& set = sets_[place.set_index];
  policy_hit(policy_, set, slots_[found.frame()]);
  set.hits.fetch_add(1, relaxed);
  return found;
}

bool FrameCache::contains(const FrameKey& key) { return static_cast<bool>(pin_valid(locate(key))); }

Reservation FrameCache::reserve(const FrameKey& key, Admission admission) {
  const Place place = locate(key);
  SetView set = view(place.set_index);
  Reservation reservation;
  if (!set.set.lock.lock_patiently()) {
    counters(place.set_index).rejected.fetch_add(1, relaxed);
    return reservation;
  }
  set.way_limit = way_limit(place.set_index);
  reserve_locked(set, place, admission, &reservation);
  set.set.lock.unlock();
  return reservation;
}

void FrameCache::reserve_locked(const SetView& set, const Place& place, Admission admission,
                                Reservation* reservation) {
  if (join(set, place, reservation) || admission == Admission::kNone) return;
  Counters& count = counters(set.set_index);
  // Reclaims what unpin() could not, because it did not get the lock.
  if (set.resident_count() > set.way_limit) (void)shrink(set);
  SetPolicy policy(policy_, set);
  if (admission == Admission::kAhead && !has_room(set, place, policy)) return;
  policy.miss({.key_hash = place.key_hash,
               .file_id_low = place.file_id[0],
               .frame_index = place.frame_index});
  uint32_t way = 0;
  const bool worth_keeping = admission != Admission::kToKeep || policy.protects_newcomer();
  if (!worth_keeping || !find_room(set, place, admission, policy, &way)) {
    policy.rejected(place.key_hash);
    count.rejected.fetch_add(1, relaxed);
    return;
  }
  begin_fill(set, place, way);
  policy.filled(way);
  CacheSlot& slot = set.slots[way];
  const uint32_t version = slot.load().version();
  // Release: a thread that sees the state sees the key.
  slot.word.store(FrameWord::make(FrameState::kFilling, version, 1).bits,
                  std::memory_order_release);
  count.fills.fetch_add(1, relaxed);
  reservation->kind = Reservation::Kind::kFill;
  reservation->fill = Fill(this, static_cast<uint32_t>(&slot - slots_), version);
}

// Pins the frame if another thread filled it or is filling it.
bool FrameCache::join(const SetView& set, const Place& place, Reservation* reservation) {
  for (uint32_t ways = set.ways_tagged(place.tag()); ways != 0; ways &= ways - 1) {
    CacheSlot& slot = set.slots[lowest(ways)];
    FrameWord word;
    if (!pin(slot, place, true, &word)) continue;
    policy_hit(policy_, set.set, slot);
    const uint32_t frame = static_cast<uint32_t>(&slot - slots_);
    if (word.state() == FrameState::kValid) {
      set.set.hits.fetch_add(1, relaxed);
      reservation->kind = Reservation::Kind::kHit;
      reservation->pin = Pin(this, frame, word.version());
    } else {
      counters(set.set_index).waits.fetch_add(1, relaxed);
      reservation->kind = Reservation::Kind::kWait;
      reservation->wait = FrameWait(this, frame, word.version());
    }
    return true;
  }
  return false;
}

// ---- making room

// Whether find() can never return it.
bool FrameCache::dead(const CacheSlot& slot) const {
  const FrameWord word = slot.load();
  const FrameState state = word.state();
  return word.doomed() || state == FrameState::kEmpty || state == FrameState::kFailed ||
         slot.epoch.load(relaxed) != epoch_of(slot.file_id[0].load(relaxed)).load(relaxed);
}

// Ways with memory and without a pin. A pin may still come.
uint32_t FrameCache::unpinned_ways(const SetView& set) const {
  return set.ways_where(set.set.resident,
                        [](const CacheSlot& slot) { return slot.load().pins() == 0; });
}

// The unpinned ways that find() can never return.
uint32_t FrameCache::useless_ways(const SetView& set, const Place& place, uint32_t unpinned) const {
  return set.ways_where(
      unpinned, [&](const CacheSlot& slot) { return dead(slot) || superseded(slot, place); });
}

// Whether there is memory, or a frame that the policy does not protect.
bool FrameCache::has_room(const SetView& set, const Place& place, const SetPolicy& policy) const {
  if (set.resident_count() < set.way_limit) return true;
  const uint32_t unpinned = unpinned_ways(set);
  return policy.unprotected(unpinned) != 0 || useless_ways(set, place, unpinned) != 0;
}

// A way with a claimed frame. Takes a useless frame first, then memory that the budget still
// allows, then the policy's victim.
bool FrameCache::find_room(const SetView& set, const Place& place, Admission admission,
                           SetPolicy& policy, uint32_t* way) {
  const uint32_t unpinned = unpinned_ways(set);
  uint32_t useless = useless_ways(set, place, unpinned);
  for (; useless != 0; useless &= useless - 1) {
    *way = lowest(useless);
    if (set.slots[*way].claim()) return true;
  }
  if (set.resident_count() < set.way_limit) {
    *way = lowest(~uint32_t{set.set.resident});
    set.set.resident |= static_cast<uint16_t>(bit(*way));
    counters(set.set_index).resident_frames.fetch_add(1, relaxed);
    return set.slots[*way].claim();  // never pinned: it had no memory
  }
  return evict(set, admission == Admission::kAlways ? unpinned : policy.unprotected(unpinned),
               policy, way);
}

// Claims the policy's victim. False: all candidates are pinned by now.
bool FrameCache::evict(const SetView& set, uint32_t candidates, SetPolicy& policy, uint32_t* way) {
  while (candidates != 0) {
    *way = policy.victim(candidates);
    candidates &= ~bit(*way);
    const CacheSlot& slot = set.slots[*way];
    const bool was_dead = dead(slot);
    if (!set.slots[*way].claim()) continue;
    if (was_dead) return true;
    policy.evicted(*way, hash_key(slot.file_id[0].load(relaxed), slot.generation.load(relaxed),
                                  slot.frame_index.load(relaxed)));
    counters(set.set_index).evictions.fetch_add(1, relaxed);
    return true;
  }
  return false;
}

// Gives a claimed frame its key.
void FrameCache::begin_fill(const SetView& set, const Place& place, uint32_t way) {
  CacheSlot& slot = set.slots[way];
  slot.file_id[0].store(place.file_id[0], std::memory_order_release);  // see holds()
  slot.file_id[1].store(place.file_id[1], std::memory_order_release);
  slot.generation.store(place.generation, std::memory_order_release);
  slot.frame_index.store(place.frame_index, std::memory_order_release);
  slot.epoch.store(place.epoch, std::memory_order_release);
  set.set_tag(way, place.tag());
}

// ---- ends of fills and pins

void FrameCache::end_fill(uint32_t frame, FrameState state, uint32_t outcome) {
  CacheSlot& slot = slots_[frame];
  if (state == FrameState::kFailed) counters(set_of(frame)).failures.fetch_add(1, relaxed);
  slot.outcome.store(outcome, relaxed);  // ordered by the word
  const uint64_t step = FrameWord::step(FrameState::kFilling, state);
  // Release: a thread that sees the state sees the bytes.
  const FrameWord before{slot.word.fetch_add(step, std::memory_order_release)};
  if (before.pins() == 1) return;  // the filler's own pin: no waiter
  slot.ended.fetch_add(1, std::memory_order_release);
  futex_wake(slot.ended, INT_MAX);
}

void FrameCache::unpin(uint32_t frame, uint32_t version) {
  CacheSlot& slot = slots_[frame];
  if (slot.load().version() != version) return;  // wiped by a fork
  // Release: the copy from the frame comes before its next claim.
  const FrameWord before{slot.word.fetch_sub(1, std::memory_order_release)};
  if (before.pins() == 1 && before.doomed()) retire(frame);
}

// ---- statistics

// Takes no locks, so the counts are not of one moment.
CacheStats FrameCache::stats() const {
  CacheStats stats;
  for (uint32_t s = 0; s < set_count_; ++s) stats.hits += sets_[s].hits.load(relaxed);
  uint64_t resident_frames = 0;
  for (const Counters& count : header_->counters) {
    stats.fills += count.fills.load(relaxed);
    stats.waits += count.waits.load(relaxed);
    stats.rejected += count.rejected.load(relaxed);
    stats.failures += count.failures.load(relaxed);
    stats.evictions += count.evictions.load(relaxed);
    resident_frames += count.resident_frames.load(relaxed);
  }
  stats.resident_bytes = resident_frames * frame_bytes_;
  return stats;
}

void FrameCache::drop(const Uuid& file_id) {
  uint64_t low;
  std::memcpy(&low, file_id.bytes.data(), sizeof low);
  // Release: a thread that sees the new epoch sees the change that caused the drop.
  epoch_of(low).fetch_add(1, std::memory_order_release);
}

}  // namespace graphlane
