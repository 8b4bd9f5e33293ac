#include "adapters/share/schedule/units.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/sizes.h"

namespace graphlane::share {
namespace {

TEST(UnitsTest, AnUncutPartitionIsOneUnit) {
  const std::vector<uint64_t> sizes{5, 0, uint64_t{1} << 50};
  const Units units(sizes, kUncut);
  ASSERT_EQ(units.count(), 3u);
  for (uint32_t p = 0; p < 3; ++p) {
    EXPECT_EQ(units.partition_of(p), p);
    EXPECT_EQ(units.offset_of(p), 0u);
    EXPECT_EQ(units.bytes_of(p), sizes[p]);
    EXPECT_EQ(units.unit_at(p, sizes[p]), p);
    EXPECT_TRUE(units.is_last(p));
  }
}

TEST(UnitsTest, FollowTheOrderOfPartitions) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> sizes(random() % 9);
    for (uint64_t& size : sizes) size = random() % 60;
    const uint64_t unit_bytes = random() % 20 + 1;
    const Units units(sizes, unit_bytes);
    ASSERT_EQ(units.partition_count(), sizes.size());
    uint32_t unit = 0;
    for (uint32_t p = 0; p < sizes.size(); ++p) {
      ASSERT_EQ(units.first_of(p), unit);
      uint64_t at = 0;
      for (; unit < units.end_of(p); ++unit) {
        ASSERT_EQ(units.partition_of(unit), p);
        ASSERT_EQ(units.offset_of(unit), at);
        ASSERT_EQ(units.is_last(unit), unit + 1 == units.end_of(p));
        ASSERT_LE(units.bytes_of(unit), unit_bytes);
        ASSERT_TRUE(units.bytes_of(unit) > 0 || sizes[p] == 0);
        for (uint64_t byte = 0; byte < units.bytes_of(unit); ++byte) {
          ASSERT_EQ(units.unit_at(p, at + byte), unit);
        }
        at += units.bytes_of(unit);
      }
      ASSERT_EQ(at, sizes[p]);
      ASSERT_EQ(units.unit_at(p, at), unit - 1);
    }
    ASSERT_EQ(unit, units.count());
  }
}

TEST(UnitsTest, AreWholeChunksWithinTheSizeAndCountLimits) {
  EXPECT_EQ(unit_bytes_for(kUncut, 100 * kMiB), kUncut);
  EXPECT_EQ(unit_bytes_for(3 * kMiB, 100 * kMiB), 3 * kMiB);
  EXPECT_EQ(unit_bytes_for(kMiB, 0), kMiB);
  EXPECT_EQ(unit_bytes_for(600'000, 100 * kMiB), 1'200'000u);
  EXPECT_EQ(unit_bytes_for(64, 100 * kMiB), kMiB);
  const uint64_t sparse_bytes = uint64_t{1} << 62;
  const uint64_t unit_bytes = unit_bytes_for(192, sparse_bytes);
  EXPECT_EQ(unit_bytes % 192, 0u);
  EXPECT_LE(sparse_bytes / unit_bytes, uint64_t{1} << 16);
}

}  // namespace
}  // namespace graphlane::share
