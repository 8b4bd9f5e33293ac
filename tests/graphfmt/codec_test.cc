#include "graphfmt/codec.h"

#include <array>
#include <random>

#include "tests/graphfmt/fixture.h"

namespace graphlane {
namespace {

using ListBytes = std::vector<uint8_t>;
using Neighbours = std::vector<uint32_t>;

constexpr uint64_t kNoLimit = uint64_t{1} << 32;
constexpr CodecKind kAllCodecs[] = {CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd};

ListBytes encoded(const ListCodec& codec, const Neighbours& list) {
  ListBytes bytes(codec.bytes_max(list.size()));
  bytes.resize(codec.encode(list, bytes.data()));
  return bytes;
}

// In memory that ends with the bytes, so that a sanitizer sees a read behind them.
Result<Neighbours> decoded(const ListCodec& codec, const ListBytes& bytes, size_t count, uint64_t limit = kNoLimit,
                           size_t slack = 0) {
  std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size() + slack]());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  std::fill_n(exact.get() + bytes.size(), slack, uint8_t{0xff});
  std::unique_ptr<uint32_t[]> list(new uint32_t[count]);
  const auto done = codec.decode({exact.get(), bytes.size()}, {list.get(), count}, limit, slack);
  if (!done) return done.error();
  return Neighbours(list.get(), list.get() + count);
}

// A list of `count`, mostly small differences, some of each length.
Neighbours random_list(std::mt19937_64& random, size_t count, unsigned bits_max) {
  Neighbours list;
  uint64_t previous = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t room = 0xffffffff - previous;
    const unsigned bits = static_cast<unsigned>(random() % (bits_max + 1));
    previous += std::min<uint64_t>(random() & ((uint64_t{1} << bits) - 1), room);
    list.push_back(static_cast<uint32_t>(previous));
  }
  return list;
}

TEST(CodecTest, VarintWritesTheExampleOfThePaper) {
  EXPECT_EQ(encoded(ListCodec::of(CodecKind::kVarint), {2, 5, 300}),
            (ListBytes{0b00000010, 0b10000011, 0b00000010, 0b00100111}));
}

TEST(CodecTest, SimdWritesTheExampleOfTheFormatPage) {
  EXPECT_EQ(encoded(ListCodec::of(CodecKind::kSimd), {2, 5, 300}), (ListBytes{0b00010000, 2, 3, 0x27, 0x01}));
}

TEST(CodecTest, RawWritesLittleEndianWords) {
  EXPECT_EQ(encoded(ListCodec::of(CodecKind::kRaw), {2, 300}), (ListBytes{2, 0, 0, 0, 44, 1, 0, 0}));
}

TEST(CodecTest, NamesAreReadBack) {
  for (const CodecKind kind : kAllCodecs) EXPECT_EQ(*parse_codec(name_of(kind)), kind);
  EXPECT_EQ(parse_codec("zip").error().code, EINVAL);
}

class EachCodecTest : public testing::TestWithParam<CodecKind> {
 protected:
  const ListCodec& codec_ = ListCodec::of(GetParam());
};

TEST_P(EachCodecTest, GivesBackWhatItGot) {
  std::mt19937_64 random(7);
  std::vector<Neighbours> lists = {{},
                                   {0},
                                   {0xffffffff},
                                   {0, 0, 0, 0, 0},
                                   {5, 5, 5, 0xffffffff, 0xffffffff},
                                   Neighbours(1000, 7),
                                   {127, 128, 255, 256, 16383, 16384, 65535, 65536, 2097151, 2097152, 16777215,
                                    16777216, 268435455, 268435456}};
  for (size_t count = 1; count < 300; ++count) {
    for (const unsigned bits : {0u, 4u, 9u, 20u}) lists.push_back(random_list(random, count, bits));
  }
  for (const unsigned bits : {1u, 6u, 8u, 15u}) lists.push_back(random_list(random, 100'000, bits));
  for (const Neighbours& list : lists) {
    const ListBytes bytes = encoded(codec_, list);
    ASSERT_LE(bytes.size(), codec_.bytes_max(list.size()));
    for (const size_t slack : {0, 8, 16}) {
      const auto back = decoded(codec_, bytes, list.size(), kNoLimit, slack);
      ASSERT_TRUE(back) << list.size() << " neighbours, slack " << slack;
      ASSERT_EQ(*back, list);
    }
    const auto count = codec_.count(bytes);
    ASSERT_TRUE(count);
    ASSERT_EQ(*count, list.size());
  }
}

TEST_P(EachCodecTest, RefusesANeighbourAtTheLimit) {
  for (const size_t count : {1, 3, 4, 64, 200}) {
    Neighbours list(count);
    for (size_t i = 0; i < count; ++i) list[i] = static_cast<uint32_t>(10 * i);
    const ListBytes bytes = encoded(codec_, list);
    EXPECT_TRUE(decoded(codec_, bytes, count, list.back() + 1));
    EXPECT_EQ(decoded(codec_, bytes, count, list.back()).error().code, EIO);
  }
}

TEST_P(EachCodecTest, RefusesAnotherCount) {
  std::mt19937_64 random(8);
  for (size_t count = 1; count < 150; ++count) {
    const ListBytes bytes = encoded(codec_, random_list(random, count, 12));
    EXPECT_FALSE(decoded(codec_, bytes, count - 1)) << count;
    EXPECT_FALSE(decoded(codec_, bytes, count + 1)) << count;
    EXPECT_FALSE(decoded(codec_, bytes, count + 100)) << count;
  }
}

// In `varint`, the first bytes of a number are a number too.
TEST_P(EachCodecTest, ATruncationIsAnErrorOrAnotherListBelowTheLimit) {
  std::mt19937_64 random(9);
  for (const size_t count : {1, 2, 5, 40, 130}) {
    const Neighbours list = random_list(random, count, 14);
    ListBytes bytes = encoded(codec_, list);
    while (!bytes.empty()) {
      bytes.pop_back();
      const auto back = decoded(codec_, bytes, count, uint64_t{list.back()} + 1);
      if (!back) continue;
      ASSERT_EQ(GetParam(), CodecKind::kVarint) << count << " neighbours, " << bytes.size() << " bytes";
      ASSERT_LE(back->back(), list.back());
    }
  }
}

// Damage that makes another list is for checksums; none reaches outside of it.
TEST_P(EachCodecTest, AFlippedBitIsAnErrorOrAnotherListBelowTheLimit) {
  std::mt19937_64 random(10);
  for (const size_t count : {1, 3, 7, 66, 150}) {
    const Neighbours list = random_list(random, count, 9);
    const uint64_t limit = list.back() + 1;
    const ListBytes bytes = encoded(codec_, list);
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      ListBytes damaged = bytes;
      damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      for (const size_t slack : {0, 16}) {
        const auto back = decoded(codec_, damaged, count, limit, slack);
        if (!back) continue;
        ASSERT_NE(*back, list) << "bit " << bit;
        for (const uint32_t neighbour : *back) ASSERT_LT(neighbour, limit) << "bit " << bit;
      }
      (void)codec_.count(damaged);
    }
  }
}

TEST_P(EachCodecTest, NoiseIsAnErrorOrAListBelowTheLimit) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20'000; ++round) {
    ListBytes noise(random() % 200);
    // All-ones and zeros are likelier to come near to what is legal.
    const int kind = static_cast<int>(random() % 4);
    for (uint8_t& byte : noise) {
      byte = static_cast<uint8_t>(kind == 0 ? random() : kind == 1 ? random() & 0x81 : kind == 2 ? random() & 3 : 0xff);
    }
    const auto count = codec_.count(noise);
    const size_t asked = count && round % 2 == 0 ? *count : random() % 100;
    const uint64_t limit = 1 + random() % kNoLimit;
    const auto back = decoded(codec_, noise, asked, limit, round % 3 == 0 ? 16 : 0);
    if (!back) continue;
    for (const uint32_t neighbour : *back) ASSERT_LT(neighbour, limit);
  }
}

TEST_P(EachCodecTest, ASumBeyond32BitsIsAnError) {
  if (codec_.has_fixed_length()) GTEST_SKIP() << "not applicable: raw has no sums";
  // 100 times the largest difference; in `simd` 4 bytes each, in `varint` 5.
  const size_t count = 100;
  ListBytes bytes;
  if (GetParam() == CodecKind::kSimd) {
    bytes.assign(count / 4 + 4 * count, 0xff);
  } else {
    for (size_t i = 0; i < count; ++i) {
      const uint8_t top = i % 2 == 0 ? 0 : 0x80;
      for (const uint8_t group : {0x0f, 0x7f, 0x7f, 0x7f, 0x7f}) bytes.push_back(group | top);
    }
  }
  ASSERT_EQ(*codec_.count(bytes), count);
  EXPECT_FALSE(decoded(codec_, bytes, count));
  EXPECT_FALSE(decoded(codec_, bytes, count, kNoLimit, 16));
}

struct ListsBlock {
  ListBytes bytes;
  std::vector<uint32_t> lengths, degrees;
  Neighbours neighbours;
};

ListsBlock random_block(std::mt19937_64& random, const ListCodec& codec, size_t list_count, size_t degree_max,
                        unsigned bits_max) {
  ListsBlock block;
  for (size_t i = 0; i < list_count; ++i) {
    const Neighbours list = random_list(random, 1 + random() % degree_max, bits_max);
    const ListBytes bytes = encoded(codec, list);
    block.bytes.insert(block.bytes.end(), bytes.begin(), bytes.end());
    block.lengths.push_back(static_cast<uint32_t>(bytes.size()));
    block.degrees.push_back(static_cast<uint32_t>(list.size()));
    block.neighbours.insert(block.neighbours.end(), list.begin(), list.end());
  }
  return block;
}

// In memory that ends with the bytes and with the neighbours.
Result<Neighbours> decoded_block(const ListCodec& codec, const ListsBlock& block, uint64_t limit = kNoLimit) {
  std::unique_ptr<uint8_t[]> exact(new uint8_t[block.bytes.size()]);
  std::copy(block.bytes.begin(), block.bytes.end(), exact.get());
  const size_t count = block.neighbours.size();
  std::unique_ptr<uint32_t[]> list(new uint32_t[count]);
  const auto done = codec.decode_lists({exact.get(), block.bytes.size()}, block.lengths, block.degrees,
                                       {list.get(), count}, limit);
  if (!done) return done.error();
  return Neighbours(list.get(), list.get() + count);
}

TEST_P(EachCodecTest, DecodesListsOneAfterTheOther) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 600; ++round) {
    const size_t degree_max = std::array<size_t, 5>{1, 3, 8, 70, 400}[static_cast<size_t>(round) % 5];
    const ListsBlock block = random_block(random, codec_, static_cast<size_t>(round) % 97, degree_max,
                                          std::array<unsigned, 4>{1, 7, 15, 31}[static_cast<size_t>(round) % 4]);
    const auto back = decoded_block(codec_, block);
    ASSERT_TRUE(back) << "round " << round;
    ASSERT_EQ(*back, block.neighbours) << "round " << round;
  }
}

TEST_P(EachCodecTest, AnEmptyListBetweenListsIsLegal) {
  std::mt19937_64 random(13);
  ListsBlock block = random_block(random, codec_, 20, 30, 9);
  for (const int at : {0, 7, 20}) {
    block.lengths.insert(block.lengths.begin() + at, 0);
    block.degrees.insert(block.degrees.begin() + at, 0);
  }
  const auto back = decoded_block(codec_, block);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, block.neighbours);
}

// As lists one by one.
TEST_P(EachCodecTest, DamagedListsOneAfterTheOtherAreAnErrorOrOthersBelowTheLimit) {
  std::mt19937_64 random(14);
  for (int round = 0; round < 3000; ++round) {
    ListsBlock block = random_block(random, codec_, 1 + random() % 30, 1 + random() % 40, 12);
    const uint64_t limit = uint64_t{*std::max_element(block.neighbours.begin(), block.neighbours.end())} + 1;
    ASSERT_TRUE(decoded_block(codec_, block, limit));
    switch (round % 4) {
      case 0: block.bytes[random() % block.bytes.size()] ^= static_cast<uint8_t>(1 << random() % 8); break;
      case 1: block.lengths[random() % block.lengths.size()] ^= static_cast<uint32_t>(1 << random() % 4); break;
      case 2: block.degrees[random() % block.degrees.size()] ^= static_cast<uint32_t>(1 << random() % 4); break;
      default: block.bytes.resize(random() % block.bytes.size()); break;
    }
    const auto back = decoded_block(codec_, block, limit);
    // Each list alone says the same.
    bool is_sound = true;
    size_t at = 0, first = 0;
    Neighbours expected;
    for (size_t i = 0; i < block.lengths.size() && is_sound; ++i) {
      if (at + block.lengths[i] > block.bytes.size()) {
        is_sound = false;
        break;
      }
      const ListBytes bytes(block.bytes.begin() + static_cast<ptrdiff_t>(at),
                            block.bytes.begin() + static_cast<ptrdiff_t>(at + block.lengths[i]));
      const auto list = decoded(codec_, bytes, block.degrees[i], limit);
      is_sound = list.has_value();
      if (is_sound) expected.insert(expected.end(), list->begin(), list->end());
      at += block.lengths[i];
      first += block.degrees[i];
    }
    is_sound = is_sound && at == block.bytes.size() && first == block.neighbours.size();
    ASSERT_EQ(back.has_value(), is_sound) << "round " << round;
    if (back) {
      ASSERT_EQ(*back, expected) << "round " << round;
    }
  }
}

// Without degrees, sound and damaged lists come as each of them alone.
TEST_P(EachCodecTest, CountsAndDecodesListsOneAfterTheOther) {
  std::mt19937_64 random(15);
  for (int round = 0; round < 3000; ++round) {
    ListsBlock block = random_block(random, codec_, 1 + random() % 60, 1 + random() % 70, 1 + round % 31);
    const uint64_t limit = uint64_t{*std::max_element(block.neighbours.begin(), block.neighbours.end())} + 1;
    switch (round % 4) {
      case 0: break;
      case 1: block.bytes[random() % block.bytes.size()] ^= static_cast<uint8_t>(1 << random() % 8); break;
      case 2: block.lengths[random() % block.lengths.size()] ^= static_cast<uint32_t>(1 << random() % 4); break;
      default: block.bytes.resize(random() % block.bytes.size()); break;
    }
    bool is_sound = true;
    size_t at = 0;
    Neighbours expected;
    std::vector<uint32_t> starts = {0};
    for (size_t i = 0; i < block.lengths.size() && is_sound; ++i) {
      is_sound = block.lengths[i] > 0 && at + block.lengths[i] <= block.bytes.size();
      if (!is_sound) break;
      const ListBytes bytes(block.bytes.begin() + static_cast<ptrdiff_t>(at),
                            block.bytes.begin() + static_cast<ptrdiff_t>(at + block.lengths[i]));
      const auto count = codec_.count(bytes);
      const auto list = count ? decoded(codec_, bytes, *count, limit) : Result<Neighbours>(Errno{EIO});
      is_sound = list.has_value();
      if (is_sound) expected.insert(expected.end(), list->begin(), list->end());
      starts.push_back(static_cast<uint32_t>(expected.size()));
      at += block.lengths[i];
    }
    is_sound = is_sound && at == block.bytes.size();
    std::unique_ptr<uint8_t[]> exact(new uint8_t[block.bytes.size()]);
    std::copy(block.bytes.begin(), block.bytes.end(), exact.get());
    std::unique_ptr<uint32_t[]> numbers(new uint32_t[block.bytes.size()]);
    std::vector<uint32_t> told(block.lengths.size() + 1);
    const auto total = codec_.decode_counted({exact.get(), block.bytes.size()}, block.lengths, told,
                                             {numbers.get(), block.bytes.size()}, limit);
    ASSERT_EQ(total.has_value(), is_sound) << "round " << round;
    if (!total) continue;
    ASSERT_EQ(Neighbours(numbers.get(), numbers.get() + *total), expected) << "round " << round;
    ASSERT_EQ(told, starts) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, EachCodecTest, testing::ValuesIn(kAllCodecs),
                         [](const auto& row) { return std::string(name_of(row.param)); });

}  // namespace
}  // namespace graphlane
