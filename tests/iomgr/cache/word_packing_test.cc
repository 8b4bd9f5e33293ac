// Word packing restores any bytes, and packs words that lie near each other.
#include "iomgr/cache/word_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace graphlane {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint64_t kPackedGroup = kPackedGroupBytes;

struct Packed {
  Bytes bytes;
  std::vector<PackedGroup> groups;
  uint64_t size = 0;
};

// Packs in place or elsewhere. Unpacking must not read the bytes behind the packed ones.
Packed packed(const Bytes& original, bool in_place) {
  Packed result{.bytes = original,
                .groups = std::vector<PackedGroup>(original.size() / kPackedGroup)};
  if (!in_place) std::fill(result.bytes.begin(), result.bytes.end(), std::byte{0xa5});
  result.size =
      pack_words(in_place ? result.bytes : original, result.bytes.data(), result.groups.data());
  EXPECT_LE(result.size, original.size());
  EXPECT_EQ(result.size, packed_bytes(original));
  result.bytes.resize(result.size);  // a sanitizer then reports reads beyond it
  return result;
}

Bytes unpacked(const Packed& packed, uint64_t begin, uint64_t length) {
  Bytes bytes(length);
  unpack_words(packed.bytes.data(), packed.groups.data(), begin, bytes);
  return bytes;
}

void expect_round_trip(const Bytes& original) {
  for (const bool in_place : {false, true}) {
    EXPECT_EQ(unpacked(packed(original, in_place), 0, original.size()), original);
  }
}

// Pairs of words with so many random bits above an offset.
Bytes pairs(uint32_t groups, uint32_t first_bits, uint32_t second_bits, uint32_t offset = 0) {
  std::mt19937 random(first_bits * 33 + second_bits);
  std::vector<uint32_t> words(groups * kPackedGroup / 4);
  for (size_t i = 0; i < words.size(); ++i) {
    const uint32_t bits = i % 2 == 0 ? first_bits : second_bits;
    words[i] = offset + (bits == 0 ? 0 : random() >> (32 - bits));
  }
  Bytes bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

TEST(WordPackingTest, EveryWidthRoundTrips) {
  for (uint32_t first = 0; first <= 32; ++first) {
    for (uint32_t second = 0; second <= 32; ++second) {
      SCOPED_TRACE(testing::Message() << first << ", " << second);
      const Bytes original = pairs(2, first, second);
      expect_round_trip(original);
      EXPECT_LE(packed_bytes(original), 2 * 16 * (first + second));
    }
  }
}

TEST(WordPackingTest, ReferencesMayBeAnything) {
  for (const uint32_t offset : {1u, 0x7fffffffu, 0x80000000u, 0xfffffff0u}) {
    expect_round_trip(pairs(3, 4, 20, offset));
  }
}

TEST(WordPackingTest, RandomWordsKeepTheirSize) {
  const Bytes original = pairs(1024, 32, 32);
  expect_round_trip(original);
  EXPECT_EQ(packed_bytes(original), kPackedBytesMax);
}

TEST(WordPackingTest, EdgesOfAGridTakeTheBitsOfTheirVertices) {
  EXPECT_LE(packed_bytes(pairs(1024, 19, 19)), kPackedBytesMax * 38 / 64);
  EXPECT_LE(packed_bytes(pairs(1024, 0, 17)), kPackedBytesMax * 17 / 64);
}

TEST(WordPackingTest, ZerosTakeNothing) {
  const Bytes zeros(16 * kPackedGroup);
  EXPECT_EQ(packed_bytes(zeros), 0u);
  expect_round_trip(zeros);
}

TEST(WordPackingTest, AnyPieceRoundTrips) {
  const Bytes original = pairs(6, 19, 11, 1000);
  const Packed whole = packed(original, true);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t begin = random() % original.size();
    const uint64_t length = random() % (original.size() - begin) + 1;
    ASSERT_EQ(unpacked(whole, begin, length),
              Bytes(original.begin() + begin, original.begin() + begin + length))
        << begin << ", " << length;
  }
}

TEST(WordPackingTest, PackedRangeCoversEachPiece) {
  const Bytes original = pairs(6, 19, 11, 1000);
  const Packed whole = packed(original, true);
  for (uint64_t begin = 0; begin < original.size(); begin += 300) {
    const uint64_t length = std::min<uint64_t>(500, original.size() - begin);
    const PackedRange range = packed_range(whole.groups.data(), begin, length);
    EXPECT_LE(range.end, whole.size);
    Packed torn = whole;  // only these bytes are used
    for (uint64_t at = 0; at < torn.size; ++at) {
      if (at < range.begin || at >= range.end) torn.bytes[at] = ~torn.bytes[at];
    }
    EXPECT_EQ(unpacked(torn, begin, length), unpacked(whole, begin, length));
  }
  EXPECT_EQ(packed_range(whole.groups.data(), 0, original.size()).end, whole.size);
  EXPECT_EQ(packed_range(whole.groups.data(), 100, 0).end, 0u);
}

// The kernel may have reclaimed pages of it: the result is wrong, but no other memory is touched.
TEST(WordPackingTest, CorruptPackedBytesAreHarmless) {
  const Bytes original = pairs(4, 19, 11);
  Packed lost = packed(original, true);
  std::fill(lost.bytes.begin(), lost.bytes.end(), std::byte{0xff});
  EXPECT_EQ(unpacked(lost, 0, original.size()).size(), original.size());
}

}  // namespace
}  // namespace graphlane
