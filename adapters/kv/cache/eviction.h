// EvictionPolicy: which value of a full cache makes room for another one, and whether any does.
//
// Entries belong to the cache; the policy links them through their own fields. It is told of each
// that comes, is hit or goes, and asked for victims. Pinned entries are no victims.
//
// Threads: one at a time (the cache's lock).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "adapters/kv/pinned_value.h"
#include "iomgr/base/error.h"

namespace graphlane::kv {

// A cached value; its bytes follow in memory.
struct CacheEntry {
  CacheEntry* chain = nullptr;  // of the hash table
  CacheEntry* newer = nullptr;  // the policy's
  CacheEntry* older = nullptr;
  uint64_t key = 0;
  float hotness = 0;
  uint32_t size_bytes = 0;
  PinCount pins{0};
  uint16_t list = 0;   // the policy's
  uint8_t visits = 0;  // the policy's

  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(this + 1); }
  bool is_pinned() const { return pins.load(std::memory_order_acquire) > 0; }
};

// Entries in the order in which they came.
class EntryList {
 public:
  bool empty() const { return newest_ == nullptr; }
  CacheEntry* oldest() const { return oldest_; }
  CacheEntry* newest() const { return newest_; }
  void push(CacheEntry& entry) {
    entry.newer = nullptr;
    entry.older = newest_;
    (newest_ == nullptr ? oldest_ : newest_->newer) = &entry;
    newest_ = &entry;
  }
  void remove(CacheEntry& entry) {
    (entry.newer == nullptr ? newest_ : entry.newer->older) = entry.older;
    (entry.older == nullptr ? oldest_ : entry.older->newer) = entry.newer;
  }
  // The oldest that is not pinned; nullptr: none.
  CacheEntry* oldest_free() const {
    CacheEntry* entry = oldest_;
    while (entry != nullptr && entry->is_pinned()) entry = entry->newer;
    return entry;
  }

 private:
  CacheEntry* oldest_ = nullptr;
  CacheEntry* newest_ = nullptr;
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  // Whether a value of this hotness may come in at all.
  virtual bool admits(uint64_t key, float hotness) = 0;
  virtual void inserted(CacheEntry& entry) = 0;
  virtual void hit(CacheEntry& entry, float hotness) = 0;
  // The entry that makes room for a value of this hotness. nullptr: none does.
  virtual CacheEntry* victim(float hotness) = 0;
  virtual void removed(CacheEntry& entry) = 0;
  // Memory of its own that grows with the entries.
  virtual uint64_t overhead_bytes() const { return 0; }
};

enum class PolicyKind : uint8_t { kHot, kLru, kFifo, kSieve, kS3Fifo };
// The hotness of a value under `kHot`: that of its last get (the paper's), or the sum over its gets
// while it is cached.
enum class HotnessKind : uint8_t { kLast, kAccumulated };

struct PolicyOptions {
  PolicyKind kind = PolicyKind::kHot;
  HotnessKind hotness = HotnessKind::kAccumulated;
  float threshold = 0;  // of LRU and FIFO: colder values stay out (the paper's §4.2.4)
  uint64_t budget_bytes = 0;
};

// "hot", "lru", "fifo", "sieve", "s3fifo". EINVAL: none of them.
Outcome<PolicyKind> parse_policy(std::string_view name);
std::string_view name_of(PolicyKind kind);
std::unique_ptr<EvictionPolicy> make_policy(const PolicyOptions& options);

}  // namespace graphlane::kv
