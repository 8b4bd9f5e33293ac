// StreamTable: which reads are a stream, and how far to prefetch.
#include "iomgr/read/pattern/stream_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kQuantum = 48 * kMiB;

class StreamTableTest : public ::testing::Test {
 protected:
  // The prefetch distance behind the read.
  uint64_t ahead_of(ByteRange range) {
    return table_->observe(file_, 1, range, kQuantum, 64 * kMiB).fetch_end - range.end();
  }
  const std::unique_ptr<StreamTable> table_ = std::make_unique<StreamTable>();
  Uuid file_ = Uuid::random();
};

TEST_F(StreamTableTest, TheFirstReadIsNoStreamYet) { EXPECT_EQ(ahead_of({0, 24 * kMiB}), 0u); }

TEST_F(StreamTableTest, ASequenceIsPrefetchedToTheNextMultiple) {
  ahead_of({0, kMiB});
  EXPECT_EQ(ahead_of({kMiB, kMiB}), 46 * kMiB);
  EXPECT_EQ(ahead_of({2 * kMiB, kMiB}), 45 * kMiB);
  EXPECT_EQ(ahead_of({47 * kMiB, kMiB}), 0u) << "not at the multiple itself";
}

TEST_F(StreamTableTest, PrefetchStaysWithinItsLimit) {
  table_->observe(file_, 1, {0, kMiB}, kQuantum, 4 * kMiB);
  EXPECT_EQ(table_->observe(file_, 1, {kMiB, kMiB}, kQuantum, 4 * kMiB).fetch_end, 6 * kMiB);
}

// Six threads take the blocks of a sweep in turn.
TEST_F(StreamTableTest, ReadsOutOfOrderAreOneStream) {
  std::vector<uint64_t> blocks(200);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = i * 24 * kMiB;
  std::mt19937 random(7);
  for (size_t i = 0; i + 6 <= blocks.size(); i += 6) {
    std::shuffle(blocks.begin() + i, blocks.begin() + i + 6, random);
  }
  int ahead = 0;
  for (const uint64_t block : blocks) ahead += ahead_of({block, 23 * kMiB}) > 0;
  EXPECT_GT(ahead, 180);
}

TEST_F(StreamTableTest, RandomReadsAreNoStream) {
  std::mt19937_64 random(11);
  int ahead = 0;
  for (int i = 0; i < 1000; ++i) {
    ahead += ahead_of({random() % 1000 * kMiB, 16384}) > 0;
  }
  EXPECT_LT(ahead, 10);
}

TEST_F(StreamTableTest, TwoStreamsOfAFileAreToldApart) {
  for (uint64_t i = 0; i < 40; ++i) {
    const uint64_t here = ahead_of({i * kMiB, kMiB});
    const uint64_t there = ahead_of({2976 * kMiB + i * kMiB, kMiB});
    EXPECT_EQ(here > 0, i > 0);
    EXPECT_EQ(there > 0, i > 0);
  }
}

// GraphChi reads a window of each of its shards in turn.
TEST_F(StreamTableTest, TracksAStreamInEachOfManyFiles) {
  std::vector<Uuid> shards(48);
  for (Uuid& shard : shards) shard = Uuid::random();
  for (uint64_t i = 0; i < 3; ++i) {
    for (const Uuid& shard : shards) {
      file_ = shard;
      EXPECT_EQ(ahead_of({i * kMiB, kMiB}) > 0, i > 0);
    }
  }
}

TEST_F(StreamTableTest, AnotherGenerationIsAnotherStream) {
  ahead_of({0, kMiB});
  EXPECT_EQ(table_->observe(file_, 2, {kMiB, kMiB}, kQuantum, 64 * kMiB).fetch_end, 2 * kMiB);
}

}  // namespace
}  // namespace graphlane
