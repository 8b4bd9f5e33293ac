#include "iomgr/volume/parts/open_size.h"

#include <gtest/gtest.h>

#include <array>

namespace graphlane {
namespace {

constexpr uint64_t kUnit = 4096;

Layout open_layout(uint64_t bound = kNoBound) {
  return {.volume = {},
          .file_id = {},
          .geometry = {.stripe_depth_bytes = kUnit, .device_count = 3, .first_device = 1},
          .logical_size = bound,
          .state = FileState::kOpen};
}

OpenSize size_of(std::array<uint64_t, 3> sizes, uint64_t promised = 0, uint64_t bound = kNoBound) {
  return size_of_open(open_layout(bound), sizes, promised);
}

// Device 1 has units 0, 3 …, device 2 has 1, 4 …, device 0 has 2, 5 ….
TEST(OpenSizeTest, IsTheLongestPrefixThatAllPartsHold) {
  EXPECT_EQ(size_of({0, 0, 0}).bytes, 0u);
  EXPECT_EQ(size_of({0, 100, 0}).bytes, 100u);
  EXPECT_EQ(size_of({0, kUnit, 0}).bytes, kUnit);
  EXPECT_EQ(size_of({kUnit, kUnit, 0}).bytes, kUnit) << "unit 2 is behind a gap";
  EXPECT_EQ(size_of({kUnit, 2 * kUnit, 10}).bytes, kUnit + 10);
  EXPECT_EQ(size_of({9 * kUnit, 0, 9 * kUnit}).bytes, 0u);
  EXPECT_EQ(size_of({kUnit, 2 * kUnit, 10}).short_device, 2u);
}

TEST(OpenSizeTest, TheBoundCapsBytesAndPromises) {
  const OpenSize open = size_of({kUnit, kUnit, kUnit}, 3 * kUnit, 5000);
  EXPECT_EQ(open.bytes, 5000u);
  EXPECT_EQ(open.promised_bytes, 5000u);
  EXPECT_FALSE(open.is_damaged());
}

TEST(OpenSizeTest, FewerBytesThanPromisedIsDamage) {
  EXPECT_FALSE(size_of({kUnit, kUnit, 10}, kUnit + 10).is_damaged());
  EXPECT_TRUE(size_of({kUnit, kUnit, 10}, kUnit + 11).is_damaged());
}

}  // namespace
}  // namespace graphlane
