#include "adapters/share/memory/buffer_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace graphlane::share {
namespace {

class BufferPoolTest : public testing::Test {
 protected:
  static constexpr uint32_t kPartitions = 10;
  static constexpr uint64_t kBytes = 100;

  bool load(uint32_t partition) {
    released_.clear();
    const bool enough = pool_.make_room(kBytes, 1, {}, released_);
    for (const uint32_t p : released_) unused_.remove(p);
    if (!enough) return false;
    pool_.reserve(partition, kBytes);
    pool_.fill(partition, Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    ++load_count_;
    return true;
  }
  void leave(uint32_t partition) {
    unused_.add(partition);
    pool_.set_spare(unused_, round_);
  }
  void use(uint32_t partition) {
    unused_.remove(partition);
    pool_.set_spare(unused_, round_);
  }

  BufferPool pool_{kPartitions, 4 * kBytes, 100};
  PartitionSet unused_{kPartitions};
  std::vector<uint32_t> released_;
  int load_count_ = 0;
  uint64_t round_ = 0;
};

TEST_F(BufferPoolTest, KeepsSpareBuffersWhileThereIsRoom) {
  for (const uint32_t p : {0, 1, 2}) {
    ASSERT_TRUE(load(p));
    leave(p);
  }
  EXPECT_TRUE(load(3));
  EXPECT_TRUE(released_.empty());
  EXPECT_EQ(pool_.used_bytes(), 4 * kBytes);
  EXPECT_TRUE(load(4));
  EXPECT_EQ(released_, std::vector<uint32_t>{2}) << "the one farthest back";
  EXPECT_EQ(pool_.find(2), nullptr);
  EXPECT_NE(pool_.find(0), nullptr);
}

TEST_F(BufferPoolTest, TheMaximumInUseCoversTwoRounds) {
  for (const uint32_t p : {0, 1, 2}) ASSERT_TRUE(load(p));
  pool_.release(1);
  pool_.release(2);
  EXPECT_EQ(pool_.used_bytes_lately(), 3 * kBytes);
  ++round_;
  leave(5);
  EXPECT_EQ(pool_.used_bytes_lately(), 3 * kBytes);
  ASSERT_TRUE(load(1));
  ++round_;
  leave(6);
  EXPECT_EQ(pool_.used_bytes_lately(), 2 * kBytes);
  EXPECT_EQ(pool_.used_bytes_max(), 3 * kBytes);
}

TEST_F(BufferPoolTest, KeptUnitsHaveNoGaps) {
  for (const uint32_t p : {0, 3, 1, 2}) {
    ASSERT_TRUE(load(p));
    leave(p);
  }
  EXPECT_TRUE(load(5));
  EXPECT_EQ(released_, std::vector<uint32_t>{3});
}

TEST_F(BufferPoolTest, EvictsStaleUnitsFirst) {
  for (const uint32_t p : {1, 0, 2, 3}) {
    ASSERT_TRUE(load(p));
    leave(p);
  }
  ++round_;
  for (const uint32_t p : {1, 2, 3}) {
    use(p);
    leave(p);
  }
  EXPECT_TRUE(load(4));
  EXPECT_EQ(released_, std::vector<uint32_t>{3}) << "0 was wanted in the last round";
  leave(4);
  ++round_;
  use(4);
  leave(4);
  EXPECT_TRUE(load(5));
  EXPECT_EQ(released_, std::vector<uint32_t>{0});
}

TEST_F(BufferPoolTest, KeepsBuffersWithReaders) {
  for (const uint32_t p : {0, 1, 2, 3}) ASSERT_TRUE(load(p));
  EXPECT_FALSE(load(4));
  leave(1);
  use(1);
  EXPECT_FALSE(load(4));
  std::vector<uint32_t> released;
  EXPECT_TRUE(pool_.make_room(kBytes, 1, {.bytes = kBytes, .count = 1}, released))
      << "a late job's does not count";
}

TEST_F(BufferPoolTest, ASmallerBudgetEvictsSpareBuffers) {
  for (const uint32_t p : {0, 1, 2, 3}) ASSERT_TRUE(load(p));
  for (const uint32_t p : {0, 1, 2}) leave(p);
  pool_.set_budget(2 * kBytes);
  std::vector<uint32_t> released;
  EXPECT_TRUE(pool_.make_room(0, 0, {}, released));
  EXPECT_EQ(released, (std::vector<uint32_t>{2, 1}));
  pool_.set_budget(0);
  EXPECT_FALSE(pool_.make_room(0, 0, {}, released));
  EXPECT_EQ(pool_.used_bytes(), kBytes) << "what is read";
}

TEST_F(BufferPoolTest, LoadingBuffersCountAgainstTheBudget) {
  pool_.reserve(0, 4 * kBytes);
  EXPECT_TRUE(pool_.is_filling(0));
  EXPECT_EQ(pool_.find(0), nullptr);
  EXPECT_FALSE(load(1));
  pool_.release(0);
  EXPECT_TRUE(load(1));
  EXPECT_EQ(pool_.used_bytes_max(), 4 * kBytes);
}

TEST_F(BufferPoolTest, CountsDescriptorsAgainstALimit) {
  BufferPool pool(kPartitions, 1000 * kBytes, 2);
  std::vector<uint32_t> released;
  for (const uint32_t p : {0, 1}) {
    ASSERT_TRUE(pool.make_room(kBytes, 1, {}, released));
    pool.reserve(p, kBytes);
  }
  EXPECT_FALSE(pool.make_room(kBytes, 1, {}, released));
  EXPECT_FALSE(pool.make_room(kBytes, 1, {.bytes = kBytes}, released));
  EXPECT_TRUE(pool.make_room(kBytes, 1, {.bytes = kBytes, .count = 1}, released)) << "a late job's";
}

// Five sweeps over ten partitions with room for four. The three places besides the current one save
// at least a load a sweep each. LRU would load all fifty.
TEST_F(BufferPoolTest, SweepsHitTheBeginOfALargerGraph) {
  for (int sweep = 0; sweep < 5; ++sweep) {
    for (uint32_t p = 0; p < kPartitions; ++p) {
      if (pool_.find(p) == nullptr) {
        ASSERT_TRUE(load(p));
      }
      use(p);
      leave(p);
    }
  }
  EXPECT_LE(load_count_, 10 + 4 * (10 - 3));
}

}  // namespace
}  // namespace graphlane::share
