#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "iomgr/base/crc32c.h"
#include "iomgr/base/crc32c_long.h"

namespace graphlane {
namespace {

std::vector<uint8_t> random_bytes(size_t count) {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

TEST(Crc32cTest, KnowsTheCheckValue) { EXPECT_EQ(crc32c_extend(0, "123456789", 9), 0xe3069283u); }

// The processor's way depends on the length, so each length up to some steps of it is tried, from each place in a word.
TEST(Crc32cTest, IsTheTablesWhateverTheLengthAndTheAddress) {
  const std::vector<uint8_t> bytes = random_bytes(1200);
  for (size_t length = 0; length < 1100; ++length) {
    const uint8_t* const begin = bytes.data() + length % 9;
    ASSERT_EQ(crc32c_extend(0, begin, length), crc32c(begin, length)) << length;
  }
}

TEST(Crc32cTest, GoesOnWhereItEnded) {
  const std::vector<uint8_t> bytes = random_bytes(5000);
  for (const size_t cut : {0, 1, 255, 256, 257, 512, 1000, 4096, 4999}) {
    const uint32_t front = crc32c_extend(0, bytes.data(), cut);
    ASSERT_EQ(crc32c_extend(front, bytes.data() + cut, bytes.size() - cut),
              crc32c(bytes.data(), bytes.size()))
        << cut;
  }
}

TEST(Crc32cTest, BlocksHaveTheirOwn) {
  constexpr size_t kBlock = 4096;
  const std::vector<uint8_t> bytes = random_bytes(11 * kBlock);
  for (uint32_t count = 0; count <= 11; ++count) {
    std::vector<uint32_t> crcs(count);
    crc32c_blocks(bytes.data(), kBlock, count, crcs.data());
    for (uint32_t i = 0; i < count; ++i)
      ASSERT_EQ(crcs[i], crc32c(bytes.data() + i * kBlock, kBlock)) << i;
  }
}

}  // namespace
}  // namespace graphlane
