// ValueCache: values by key, in a budget of bytes (MaiterStore §3.4: hotness, vertex, list). What
// makes room is the policy's (eviction.h).
//
// The budget counts the values with all that the cache needs for them: the entry, what the
// allocator adds, and the hash table. A value that is pinned stays.
//
// Threads: any. Keys are divided among shards, each with a lock and a share of the budget.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "adapters/kv/cache/eviction.h"
#include "adapters/kv/pinned_value.h"
#include "iomgr/base/mutex.h"

namespace graphlane::kv {

struct CacheOptions {
  uint64_t budget_bytes = 0;  // 0: nothing is cached
  PolicyKind policy = PolicyKind::kHot;
  HotnessKind hotness = HotnessKind::kAccumulated;
  float threshold = 0;  // eviction.h
  unsigned shards = 1;  // for as many threads at once
  // hotness counts per byte that a value takes: many short hot values before a long one
  bool per_byte = false;
};

struct CacheCounts {
  uint64_t inserted = 0;
  uint64_t evicted = 0;
  uint64_t entries = 0;  // now
  uint64_t bytes = 0;    // now, of the budget
};

// About what a value of so many bytes takes of the budget.
constexpr uint64_t cache_cost(uint64_t value_bytes) {
  return (sizeof(CacheEntry) + value_bytes + 8 + 15) / 16 * 16 + 8;
}

class ValueCache {
 public:
  explicit ValueCache(const CacheOptions& options);
  ~ValueCache();

  bool is_empty_by_design() const { return options_.budget_bytes == 0; }
  // False: not cached.
  bool find(uint64_t key, float hotness, PinnedValue& value);
  // Has the processor fetch what find() will look at: the table some keys ahead, then the value.
  void prefetch_place(uint64_t key) const;
  void prefetch_value(uint64_t key) const;
  // Takes a copy of the bytes, if the policy wants it; then `value` is the copy. False: it stays
  // out.
  bool insert(uint64_t key, float hotness, std::span<const uint8_t> bytes, PinnedValue& value);
  CacheCounts counts() const;

 private:
  class Shard;

  const CacheOptions options_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace graphlane::kv
