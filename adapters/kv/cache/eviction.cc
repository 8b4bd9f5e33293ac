#include "adapters/kv/cache/eviction.h"

#include <deque>
#include <unordered_set>

#include "adapters/kv/cache/hot_policy.h"

namespace graphlane::kv {
namespace {

// LRU and FIFO: one list. FIFO leaves a value where it is when it is hit.
class ListPolicy final : public EvictionPolicy {
 public:
  ListPolicy(bool by_use, float threshold) : by_use_(by_use), threshold_(threshold) {}
  bool admits(uint64_t, float hotness) override { return hotness >= threshold_; }
  void inserted(CacheEntry& entry) override { list_.push(entry); }
  void hit(CacheEntry& entry, float) override {
    if (!by_use_ || list_.newest() == &entry) return;
    list_.remove(entry);
    list_.push(entry);
  }
  CacheEntry* victim(float) override { return list_.oldest_free(); }
  void removed(CacheEntry& entry) override { list_.remove(entry); }

 private:
  const bool by_use_;
  const float threshold_;
  EntryList list_;
};

// SIEVE (NSDI '24): a hand goes from the oldest to the newest, spares what was hit since it last
// came, and evicts the first that was not.
class SievePolicy final : public EvictionPolicy {
 public:
  bool admits(uint64_t, float) override { return true; }
  void inserted(CacheEntry& entry) override {
    list_.push(entry);
    ++count_;
  }
  void hit(CacheEntry& entry, float) override { entry.visits = 1; }
  CacheEntry* victim(float) override {
    CacheEntry* entry = hand_ != nullptr ? hand_ : list_.oldest();
    for (size_t step = 0; step < 2 * count_ && (entry->visits > 0 || entry->is_pinned()); ++step) {
      entry->visits = 0;
      entry = entry->newer != nullptr ? entry->newer : list_.oldest();
    }
    if (entry == nullptr || entry->is_pinned()) return nullptr;
    hand_ = entry;
    return entry;
  }
  void removed(CacheEntry& entry) override {
    if (hand_ == &entry) hand_ = entry.newer;
    list_.remove(entry);
    --count_;
  }

 private:
  EntryList list_;
  CacheEntry* hand_ = nullptr;
  size_t count_ = 0;
};

// S3-FIFO (SOSP '23): a tenth of the bytes is for newcomers. What was hit twice there, or comes
// back soon after, goes to the main queue, which spares a value once for each hit, three at most.
class S3FifoPolicy final : public EvictionPolicy {
 public:
  explicit S3FifoPolicy(uint64_t budget_bytes) : small_max_(budget_bytes / 10) {}

  bool admits(uint64_t, float) override { return true; }
  void inserted(CacheEntry& entry) override {
    entry.visits = 0;
    if (ghosts_.erase(entry.key) > 0) {
      push(entry, kMain);
    } else {
      push(entry, kSmall);
    }
  }
  void hit(CacheEntry& entry, float) override {
    entry.visits = entry.visits < 3 ? entry.visits + 1 : 3;
  }
  CacheEntry* victim(float) override {
    for (size_t step = 0; step < 4 * (count_ + 1); ++step) {
      const bool from_small =
          (bytes_[kSmall] > small_max_ || lists_[kMain].oldest_free() == nullptr) &&
          lists_[kSmall].oldest_free() != nullptr;
      CacheEntry* const entry = lists_[from_small ? kSmall : kMain].oldest_free();
      if (entry == nullptr) return nullptr;
      const bool is_spared = from_small ? entry->visits > 1 : entry->visits > 0;
      if (!is_spared) {
        if (from_small) remember(entry->key);
        return entry;
      }
      take(*entry);
      entry->visits = from_small ? 0 : entry->visits - 1;
      push(*entry, kMain);
    }
    return nullptr;
  }
  void removed(CacheEntry& entry) override { take(entry); }
  uint64_t overhead_bytes() const override { return order_.size() * kGhostBytes; }

 private:
  static constexpr uint16_t kSmall = 0, kMain = 1;
  // about: a node of the set, its place, and one in the order
  static constexpr uint64_t kGhostBytes = 48;

  void push(CacheEntry& entry, uint16_t list) {
    entry.list = list;
    lists_[list].push(entry);
    bytes_[list] += entry.size_bytes;
    ++count_;
  }
  void take(CacheEntry& entry) {
    lists_[entry.list].remove(entry);
    bytes_[entry.list] -= entry.size_bytes;
    --count_;
  }
  // As many keys as the main queue has values.
  void remember(uint64_t key) {
    if (ghosts_.insert(key).second) order_.push_back(key);
    while (order_.size() > count_) {
      ghosts_.erase(order_.front());
      order_.pop_front();
    }
  }

  const uint64_t small_max_;
  EntryList lists_[2];
  uint64_t bytes_[2] = {0, 0};
  size_t count_ = 0;
  std::unordered_set<uint64_t> ghosts_;
  std::deque<uint64_t> order_;
};

constexpr std::pair<PolicyKind, std::string_view> kPolicyNames[] = {
    {PolicyKind::kHot, "hot"},
    {PolicyKind::kLru, "lru"},
    {PolicyKind::kFifo, "fifo"},
    {PolicyKind::kSieve, "sieve"},
    {PolicyKind::kS3Fifo, "s3fifo"}};

}  // namespace

Outcome<PolicyKind> parse_policy(std::string_view name) {
  for (const auto& [kind, known] : kPolicyNames) {
    if (known == name) return kind;
  }
  return make_error(EINVAL, "'{}': hot, lru, fifo, sieve or s3fifo", name);
}

std::string_view name_of(PolicyKind kind) {
  for (const auto& [known, name] : kPolicyNames) {
    if (known == kind) return name;
  }
  return "?";
}

std::unique_ptr<EvictionPolicy> make_policy(const PolicyOptions& options) {
  switch (options.kind) {
    case PolicyKind::kHot: return std::make_unique<HotPolicy>(options.hotness);
    case PolicyKind::kLru: return std::make_unique<ListPolicy>(true, options.threshold);
    case PolicyKind::kFifo: return std::make_unique<ListPolicy>(false, options.threshold);
    case PolicyKind::kSieve: return std::make_unique<SievePolicy>();
    case PolicyKind::kS3Fifo: return std::make_unique<S3FifoPolicy>(options.budget_bytes);
  }
  return nullptr;
}

}  // namespace graphlane::kv
