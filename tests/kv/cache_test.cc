// Caches: evictions, the budget, and pins.
#include "adapters/kv/cache/value_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "adapters/kv/cache/hot_policy.h"

namespace graphlane::kv {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class CacheTest : public testing::Test {
 protected:
  // Room for `values` values of 1000 bytes.
  void start(PolicyKind policy, size_t values, HotnessKind hotness = HotnessKind::kLast,
             float threshold = 0) {
    cache_ = std::make_unique<ValueCache>(CacheOptions{.budget_bytes = 64 * 8 + values * 1100,
                                                       .policy = policy,
                                                       .hotness = hotness,
                                                       .threshold = threshold});
  }
  bool has(uint64_t key, float hotness = 0) {
    PinnedValue value;
    return cache_->find(key, hotness, value);
  }
  // A get, as the reader does it: whether it was a hit.
  bool get(uint64_t key, float hotness, size_t size = 1000) {
    PinnedValue value;
    if (cache_->find(key, hotness, value)) return true;
    cache_->insert(key, hotness, bytes_of(std::string(size, static_cast<char>(key))), value);
    return false;
  }

  std::unique_ptr<ValueCache> cache_;
};

TEST_F(CacheTest, TheColdestMakesRoomForAHotterOne) {  // Figure 4(b) and (c) of the paper
  start(PolicyKind::kHot, 3);
  get(1, 10);
  get(2, 20);
  get(3, 30);
  get(4, 35);  // evicts 1
  EXPECT_FALSE(has(1));
  get(2, 80);  // is hotter now
  get(5, 33);  // evicts 3
  EXPECT_TRUE(has(2, 80) && has(4, 35) && has(5, 33));
  EXPECT_FALSE(has(3));
  get(6, 33);  // not hotter than the coldest
  EXPECT_FALSE(has(6));
}

TEST_F(CacheTest, SeveralMakeRoomForALongerOneOnlyWhileTheyAreColder) {
  start(PolicyKind::kHot, 3);
  get(1, 1);
  get(2, 2);
  get(3, 9);
  get(4, 5, 2000);  // 1 and 2 go
  EXPECT_TRUE(has(4, 5) && has(3, 9));
  EXPECT_FALSE(has(1) || has(2));
  get(5, 7, 3200);  // 4 would go, but not 3
  EXPECT_FALSE(has(5));
  EXPECT_TRUE(has(3, 9));
}

TEST_F(CacheTest, HotnessAddsUp) {
  start(PolicyKind::kHot, 2, HotnessKind::kAccumulated);
  get(1, 4);
  get(2, 5);
  for (int i = 0; i < 3; ++i) get(1, 4);
  get(3, 12);  // hotter than 5, colder than 16
  EXPECT_FALSE(has(2));
  get(4, 13);
  EXPECT_TRUE(has(1));
  EXPECT_FALSE(has(3));
}

TEST_F(CacheTest, HotnessPerByteKeepsShortValues) {
  ValueCache cache({.budget_bytes = 64 * 8 + 4400,
                    .policy = PolicyKind::kHot,
                    .hotness = HotnessKind::kLast,
                    .per_byte = true});
  PinnedValue value;
  ASSERT_TRUE(cache.insert(1, 30, bytes_of(std::string(3000, 'l')), value));
  for (uint64_t key = 2; key < 22; ++key) {
    ASSERT_TRUE(cache.insert(key, 5, bytes_of(std::string(100, 's')), value)) << key;
  }
  EXPECT_FALSE(cache.find(1, 30, value));
  EXPECT_FALSE(cache.insert(1, 30, bytes_of(std::string(3000, 'l')), value));
}

TEST(HotPolicy, ListsAscendWithHotness) {
  uint16_t before = 0;
  for (double hotness = 1e-37; hotness < 1e38; hotness *= 1.05) {
    const uint16_t list = HotPolicy::list_of(static_cast<float>(hotness));
    EXPECT_GE(list, before);
    EXPECT_LE(list, before == 0 ? 2047 : before + 1);
    before = list;
  }
  EXPECT_EQ(HotPolicy::list_of(0), 0);
  EXPECT_EQ(HotPolicy::list_of(-1), 0);
}

TEST_F(CacheTest, LeastRecentlyUsedAndFirstInFirstOut) {
  for (const PolicyKind kind : {PolicyKind::kLru, PolicyKind::kFifo}) {
    start(kind, 3);
    for (const uint64_t key : {1, 2, 3}) get(key, 1);
    get(1, 1);
    get(4, 0);
    EXPECT_EQ(has(1), kind == PolicyKind::kLru);
    EXPECT_EQ(has(2), kind == PolicyKind::kFifo);
  }
}

TEST_F(CacheTest, AThresholdKeepsColdValuesOut) {
  for (const PolicyKind kind : {PolicyKind::kLru, PolicyKind::kFifo}) {
    start(kind, 3, HotnessKind::kLast, 5);
    get(1, 4);
    get(2, 5);
    EXPECT_FALSE(has(1));
    EXPECT_TRUE(has(2));
  }
}

TEST_F(CacheTest, SieveSparesWhatWasHit) {
  start(PolicyKind::kSieve, 3);
  for (const uint64_t key : {1, 2, 3}) get(key, 1);
  get(1, 1);
  get(4, 1);  // spares 1 once, evicts 2
  EXPECT_FALSE(has(2));
  get(5, 1);  // the hand stands at 3
  EXPECT_FALSE(has(3));
  EXPECT_TRUE(has(1) && has(4) && has(5));
}

TEST_F(CacheTest, S3FifoLetsAScanPass) {
  start(PolicyKind::kS3Fifo, 20);
  for (int round = 0; round < 4; ++round) {
    for (uint64_t key = 0; key < 10; ++key) get(key, 1);
  }
  for (uint64_t key = 100; key < 200; ++key) get(key, 1);
  int stayed = 0;
  for (uint64_t key = 0; key < 10; ++key) stayed += has(key);
  EXPECT_EQ(stayed, 10);
}

TEST_F(CacheTest, APinnedValueStaysWhateverThePolicy) {
  for (const PolicyKind kind : {PolicyKind::kHot, PolicyKind::kLru, PolicyKind::kFifo,
                                PolicyKind::kSieve, PolicyKind::kS3Fifo}) {
    start(kind, 3);
    PinnedValue held;
    ASSERT_TRUE(cache_->insert(1, 0.5, bytes_of(std::string(1000, 'p')), held));
    for (uint64_t key = 2; key < 50; ++key) get(key, static_cast<float>(key));
    EXPECT_EQ(std::string(held.bytes().begin(), held.bytes().end()), std::string(1000, 'p'))
        << name_of(kind);
    EXPECT_TRUE(has(1)) << name_of(kind);
    held.release();
    for (uint64_t key = 50; key < 100; ++key) get(key, static_cast<float>(key));
    // SIEVE: its hand follows the newcomers
    EXPECT_EQ(has(1), kind == PolicyKind::kSieve) << name_of(kind);
  }
}

TEST_F(CacheTest, TheBudgetHoldsWhateverThePolicy) {
  std::mt19937_64 random(1);
  for (const PolicyKind kind : {PolicyKind::kHot, PolicyKind::kLru, PolicyKind::kFifo,
                                PolicyKind::kSieve, PolicyKind::kS3Fifo}) {
    ValueCache cache(
        {.budget_bytes = 100'000, .policy = kind, .hotness = HotnessKind::kAccumulated});
    uint64_t most = 0;
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t key = random() % 3000 * (random() % 3000) / 3000;
      PinnedValue value;
      if (!cache.find(key, 1, value)) {
        cache.insert(key, 1, bytes_of(std::string(key % 700, 'x')), value);
      }
      most = std::max(most, cache.counts().bytes);
    }
    // the table may double, and ghosts come, before the next one makes room
    EXPECT_LE(most, 100'000 + 16 * 1024) << name_of(kind);
    EXPECT_GT(cache.counts().entries, 50u) << name_of(kind);
  }
}

TEST_F(CacheTest, WithoutABudgetNothingIsCached) {
  ValueCache cache({});
  PinnedValue value;
  EXPECT_FALSE(cache.insert(1, 1, bytes_of("x"), value));
  EXPECT_FALSE(cache.find(1, 1, value));
}

}  // namespace
}  // namespace graphlane::kv
