// The checksums of a part: their places, the header, and sums of blocks.
#include "iomgr/volume/sum/sum_format.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "iomgr/base/crc32c.h"
#include "iomgr/base/crc32c_long.h"
#include "tests/iomgr/content.h"

namespace graphlane {
namespace {

constexpr uint32_t kOrdinal = 2;
const Uuid kVolume = Uuid::random();
const Uuid kFile = Uuid::random();

TEST(SumFormatTest, BlocksAtOnceHaveTheSumsOfEachAlone) {
  for (const uint32_t count : {1u, 3u, 4u, 5u, 17u}) {
    std::string bytes(count * kBlockSize, '\0');
    fill(bytes.data(), bytes.size(), /*seed=*/count);
    std::vector<uint32_t> crcs(count);
    crc32c_blocks(bytes.data(), kBlockSize, count, crcs.data());
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(crcs[i], crc32c(reinterpret_cast<const uint8_t*>(bytes.data()) + i * kBlockSize,
                                kBlockSize));
    }
  }
}

TEST(SumFormatTest, ZerosHaveTheSumZero) {
  const std::string zeros(2 * kBlockSize, '\0');
  uint32_t sums[2] = {1, 1};
  sum_blocks(zeros.data(), 2, sums);
  EXPECT_EQ(sums[0], 0u);
  EXPECT_EQ(sums[1], 0u);
  EXPECT_EQ(sum_partial_block(zeros.data(), 100), 0u);
}

TEST(SumFormatTest, UncoveredBytesCountAsZeros) {
  std::string block(kBlockSize, '\0');
  fill(block.data(), 1000, /*seed=*/5);
  uint32_t whole = 0;
  sum_blocks(block.data(), 1, &whole);
  EXPECT_EQ(sum_partial_block(block.data(), 1000), whole);
  EXPECT_NE(sum_partial_block(block.data(), 999), whole);
}

TEST(SumFormatTest, RegionsAreFewEnough) {
  EXPECT_EQ(sum_region_bytes(0), kSumRegionMin);
  EXPECT_EQ(sum_region_bytes(kSumRegionMin * kSumRegionsMax), kSumRegionMin);
  EXPECT_EQ(sum_region_bytes(kSumRegionMin * kSumRegionsMax + 1), 2 * kSumRegionMin);
  const uint64_t most = INT64_MAX;
  EXPECT_LE(most / sum_region_bytes(most), kSumRegionsMax);
}

TEST(SumFormatTest, AHeaderIsReadBack) {
  const SumHeader header{.ordinal = kOrdinal,
                         .generation = 7,
                         .sequence = 9,
                         .region_bytes = 2 * kSumRegionMin,
                         .covered_bytes = 123456,
                         .is_partial = true};
  const SumHeaderBytes bytes = encode_sum_header(header, kVolume, kFile);
  SumHeader read;
  ASSERT_EQ(decode_sum_header(bytes, kVolume, kFile, kOrdinal, &read), SumVerdict::kGood);
  EXPECT_EQ(read, header);
}

TEST(SumFormatTest, AnotherPartsHeaderIsForeign) {
  const SumHeaderBytes bytes = encode_sum_header({.ordinal = kOrdinal}, kVolume, kFile);
  SumHeader read;
  EXPECT_EQ(decode_sum_header(bytes, kVolume, kFile, kOrdinal + 1, &read), SumVerdict::kForeign);
  EXPECT_EQ(decode_sum_header(bytes, kVolume, Uuid::random(), kOrdinal, &read),
            SumVerdict::kForeign);
  EXPECT_EQ(decode_sum_header(bytes, Uuid::random(), kFile, kOrdinal, &read), SumVerdict::kForeign);
}

TEST(SumFormatTest, AnyFlippedBitIsSeen) {
  const SumHeaderBytes good =
      encode_sum_header({.ordinal = kOrdinal, .covered_bytes = 1}, kVolume, kFile);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    SumHeaderBytes bad = good;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    SumHeader read;
    EXPECT_EQ(decode_sum_header(bad, kVolume, kFile, kOrdinal, &read), SumVerdict::kDamaged) << bit;
  }
}

}  // namespace
}  // namespace graphlane
