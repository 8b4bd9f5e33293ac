#include "adapters/kv/cache/value_cache.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace graphlane::kv {
namespace {

constexpr size_t kTableMin = 64;
// malloc keeps so much before each piece.
constexpr uint64_t kMallocBytes = sizeof(size_t);

uint64_t hash_of(uint64_t key) {
  key *= 0x9e3779b97f4a7c15;
  return key ^ key >> 32;
}

uint64_t bytes_of(CacheEntry* entry) { return ::malloc_usable_size(entry) + kMallocBytes; }

}  // namespace

class ValueCache::Shard {
 public:
  Shard(const CacheOptions& options, uint64_t budget_bytes)
      : budget_bytes_(budget_bytes),
        per_byte_(options.per_byte),
        policy_(make_policy({.kind = options.policy,
                             .hotness = options.hotness,
                             .threshold = options.threshold,
                             .budget_bytes = budget_bytes})),
        table_(kTableMin) {
    publish();
  }
  ~Shard() {
    for (CacheEntry* entry : table_) {
      while (entry != nullptr) std::free(std::exchange(entry, entry->chain));
    }
  }

  bool find(uint64_t key, uint64_t hash, float hotness, PinnedValue& value) {
    MutexLock lock(mu_);
    CacheEntry* const entry = look_up(key, hash);
    if (entry == nullptr) return false;
    policy_->hit(*entry, heat(hotness, entry->size_bytes));
    pin(*entry, value);
    return true;
  }

  void prefetch_place(uint64_t hash) const {
    // Relaxed: the address of a table that has just been replaced does no harm.
    __builtin_prefetch(places_.load(std::memory_order_relaxed) +
                       (hash & mask_.load(std::memory_order_relaxed)));
  }
  void prefetch_value(uint64_t hash) const {
    MutexLock lock(mu_);
    __builtin_prefetch(table_[hash & (table_.size() - 1)]);
  }

  bool insert(uint64_t key, uint64_t hash, float hotness, std::span<const uint8_t> bytes,
              PinnedValue& value) {
    MutexLock lock(mu_);
    hotness = heat(hotness, bytes.size());
    if (!policy_->admits(key, hotness) || bytes.size() > budget_bytes_ ||
        !make_room(sizeof(CacheEntry) + bytes.size(), hotness)) {
      return false;
    }
    if (CacheEntry* const there = look_up(key, hash)) {  // another thread was first
      pin(*there, value);
      return true;
    }
    void* const memory = std::malloc(sizeof(CacheEntry) + bytes.size());
    if (memory == nullptr) return false;
    auto* const entry = new (memory) CacheEntry;
    entry->key = key;
    entry->hotness = hotness;
    entry->size_bytes = static_cast<uint32_t>(bytes.size());
    if (!bytes.empty()) std::memcpy(entry->bytes(), bytes.data(), bytes.size());
    if (count_ == table_.size()) grow();
    CacheEntry*& place = table_[hash & (table_.size() - 1)];
    entry->chain = std::exchange(place, entry);
    ++count_;
    ++inserted_;
    entry_bytes_ += bytes_of(entry);
    policy_->inserted(*entry);
    pin(*entry, value);
    return true;
  }

  void add_to(CacheCounts& counts) const {
    MutexLock lock(mu_);
    counts.inserted += inserted_;
    counts.evicted += evicted_;
    counts.entries += count_;
    counts.bytes += used_bytes();
  }

 private:
  float heat(float hotness, size_t value_bytes) const {
    return per_byte_ ? hotness / static_cast<float>(cache_cost(value_bytes)) : hotness;
  }

  static void pin(CacheEntry& entry, PinnedValue& value) {
    entry.pins.fetch_add(1, std::memory_order_relaxed);  // under the lock
    value = PinnedValue({entry.bytes(), entry.size_bytes}, &entry.pins);
  }

  CacheEntry* look_up(uint64_t key, uint64_t hash) REQUIRES(mu_) {
    CacheEntry* entry = table_[hash & (table_.size() - 1)];
    while (entry != nullptr && entry->key != key) entry = entry->chain;
    return entry;
  }

  uint64_t used_bytes() const REQUIRES(mu_) {
    return entry_bytes_ + table_.size() * sizeof(CacheEntry*) + policy_->overhead_bytes();
  }

  // The coldest, or the next in turn, make room until so many bytes fit.
  bool make_room(uint64_t bytes, float hotness) REQUIRES(mu_) {
    bytes = (bytes + kMallocBytes + 15) / 16 * 16;
    while (used_bytes() + bytes > budget_bytes_) {
      CacheEntry* const victim = policy_->victim(hotness);
      if (victim == nullptr) return false;
      erase(*victim);
    }
    return true;
  }

  void erase(CacheEntry& entry) REQUIRES(mu_) {
    CacheEntry** place = &table_[hash_of(entry.key) >> kShardBits & (table_.size() - 1)];
    while (*place != &entry) place = &(*place)->chain;
    *place = entry.chain;
    policy_->removed(entry);
    --count_;
    ++evicted_;
    entry_bytes_ -= bytes_of(&entry);
    std::free(&entry);
  }

  void grow() REQUIRES(mu_) {
    std::vector<CacheEntry*> larger(table_.size() * 2);
    for (CacheEntry* entry : table_) {
      while (entry != nullptr) {
        CacheEntry* const next = entry->chain;
        CacheEntry*& place = larger[hash_of(entry->key) >> kShardBits & (larger.size() - 1)];
        entry->chain = std::exchange(place, entry);
        entry = next;
      }
    }
    table_.swap(larger);
    publish();
  }
  void publish() REQUIRES(mu_) {
    places_.store(table_.data(), std::memory_order_relaxed);
    mask_.store(table_.size() - 1, std::memory_order_relaxed);
  }

  friend class ValueCache;
  static constexpr unsigned kShardBits = 6;

  const uint64_t budget_bytes_;
  const bool per_byte_;
  mutable Mutex mu_;
  const std::unique_ptr<EvictionPolicy> policy_;  // called under mu_
  std::vector<CacheEntry*> table_ GUARDED_BY(mu_);
  // where table_ is, only for prefetch_place()
  std::atomic<CacheEntry* const*> places_{nullptr};
  std::atomic<uint64_t> mask_{0};
  size_t count_ GUARDED_BY(mu_) = 0;
  uint64_t entry_bytes_ GUARDED_BY(mu_) = 0;
  uint64_t inserted_ GUARDED_BY(mu_) = 0;
  uint64_t evicted_ GUARDED_BY(mu_) = 0;
};

ValueCache::ValueCache(const CacheOptions& options) : options_(options) {
  if (options.budget_bytes == 0) return;
  unsigned shards = 1;
  while (shards < options.shards && shards < 1u << Shard::kShardBits) shards *= 2;
  for (unsigned i = 0; i < shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(options, options.budget_bytes / shards));
  }
}

ValueCache::~ValueCache() = default;

bool ValueCache::find(uint64_t key, float hotness, PinnedValue& value) {
  if (shards_.empty()) return false;
  const uint64_t hash = hash_of(key);
  return shards_[hash & (shards_.size() - 1)]->find(key, hash >> Shard::kShardBits, hotness, value);
}

void ValueCache::prefetch_place(uint64_t key) const {
  if (shards_.empty()) return;
  const uint64_t hash = hash_of(key);
  shards_[hash & (shards_.size() - 1)]->prefetch_place(hash >> Shard::kShardBits);
}

void ValueCache::prefetch_value(uint64_t key) const {
  if (shards_.empty()) return;
  const uint64_t hash = hash_of(key);
  shards_[hash & (shards_.size() - 1)]->prefetch_value(hash >> Shard::kShardBits);
}

bool ValueCache::insert(uint64_t key, float hotness, std::span<const uint8_t> bytes,
                        PinnedValue& value) {
  if (shards_.empty()) return false;
  const uint64_t hash = hash_of(key);
  return shards_[hash & (shards_.size() - 1)]->insert(key, hash >> Shard::kShardBits, hotness,
                                                      bytes, value);
}

CacheCounts ValueCache::counts() const {
  CacheCounts counts;
  for (const auto& shard : shards_) shard->add_to(counts);
  return counts;
}

}  // namespace graphlane::kv
