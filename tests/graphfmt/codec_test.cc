#include "graphfmt/codec/codec.h"

#include <array>
#include <random>

#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {
namespace {

using ListBytes = std::vector<uint8_t>;
using Neighbours = std::vector<uint32_t>;

constexpr uint64_t kNoLimit = uint64_t{1} << 32;
constexpr CodecKind kAllCodecs[] = {CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd,
                                    CodecKind::kReference};

ListBytes encoded(const ListCodec& codec, const Neighbours& list) {
  ListBytes bytes(codec.bytes_max(list.size()));
  bytes.resize(codec.encode(list, bytes.data()));
  return bytes;
}

// Memory that ends with the bytes, so that a sanitizer detects a read behind them.
Result<Neighbours> decoded(const ListCodec& codec, const ListBytes& bytes, size_t count,
                           uint64_t limit = kNoLimit, size_t slack = 0) {
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
  EXPECT_EQ(encoded(ListCodec::of(CodecKind::kSimd), {2, 5, 300}),
            (ListBytes{0b00010000, 2, 3, 0x27, 0x01}));
}

TEST(CodecTest, RawWritesLittleEndianWords) {
  EXPECT_EQ(encoded(ListCodec::of(CodecKind::kRaw), {2, 300}),
            (ListBytes{2, 0, 0, 0, 44, 1, 0, 0}));
}

TEST(CodecTest, NamesAreReadBack) {
  for (const CodecKind kind : kAllCodecs) EXPECT_EQ(*parse_codec(name_of(kind)), kind);
  EXPECT_EQ(parse_codec("zip").error().code, EINVAL);
}

class EachCodecTest : public testing::TestWithParam<CodecKind> {
 protected:
  const ListCodec& codec_ = ListCodec::of(GetParam());
};

TEST_P(EachCodecTest, RoundTripsLists) {
  std::mt19937_64 random(7);
  std::vector<Neighbours> lists = {{},
                                   {0},
                                   {0xffffffff},
                                   {0, 0, 0, 0, 0},
                                   {5, 5, 5, 0xffffffff, 0xffffffff},
                                   Neighbours(1000, 7),
                                   {127, 128, 255, 256, 16383, 16384, 65535, 65536, 2097151,
                                    2097152, 16777215, 16777216, 268435455, 268435456}};
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

// In `varint`, a prefix of a number is a number too.
TEST_P(EachCodecTest, ATruncationIsAnErrorOrAnotherListBelowTheLimit) {
  std::mt19937_64 random(9);
  for (const size_t count : {1, 2, 5, 40, 130}) {
    const Neighbours list = random_list(random, count, 14);
    ListBytes bytes = encoded(codec_, list);
    while (!bytes.empty()) {
      bytes.pop_back();
      const auto back = decoded(codec_, bytes, count, uint64_t{list.back()} + 1);
      if (!back) continue;
      ASSERT_EQ(GetParam(), CodecKind::kVarint)
          << count << " neighbours, " << bytes.size() << " bytes";
      ASSERT_LE(back->back(), list.back());
    }
  }
}

// Damage that gives another valid list is the checksums' task. No damage causes a read outside the
// list.
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
        // A group of one list has no list before it, from which its first number could count.
        if (GetParam() != CodecKind::kReference) {
          ASSERT_NE(*back, list) << "bit " << bit;
        }
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
    // All-ones and zeros are more likely to come near valid values.
    const int kind = static_cast<int>(random() % 4);
    for (uint8_t& byte : noise) {
      byte = static_cast<uint8_t>(kind == 0   ? random()
                                  : kind == 1 ? random() & 0x81
                                  : kind == 2 ? random() & 3
                                              : 0xff);
    }
    const auto count = codec_.count(noise);
    // A few bytes may ask for a long interval.
    const size_t asked = count && *count < 1 << 20 && round % 2 == 0 ? *count : random() % 100;
    const uint64_t limit = 1 + random() % kNoLimit;
    const auto back = decoded(codec_, noise, asked, limit, round % 3 == 0 ? 16 : 0);
    if (!back) continue;
    for (const uint32_t neighbour : *back) ASSERT_LT(neighbour, limit);
  }
}

TEST_P(EachCodecTest, ASumBeyond32BitsIsAnError) {
  if (codec_.has_fixed_length()) GTEST_SKIP() << "not applicable: raw has no sums";
  if (GetParam() == CodecKind::kReference) {
    GTEST_SKIP() << "not applicable: ReferenceCodecTest.LimitsAreKept";
  }
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

ListsBlock random_block(std::mt19937_64& random, const ListCodec& codec, size_t list_count,
                        size_t degree_max, unsigned bits_max) {
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

// Memory that ends with the bytes, and memory that ends with the neighbours.
Result<Neighbours> decoded_block(const ListCodec& codec, const ListsBlock& block,
                                 uint64_t limit = kNoLimit) {
  std::unique_ptr<uint8_t[]> exact(new uint8_t[block.bytes.size()]);
  std::copy(block.bytes.begin(), block.bytes.end(), exact.get());
  const size_t count = block.neighbours.size();
  std::unique_ptr<uint32_t[]> list(new uint32_t[count]);
  const auto done = codec.decode_lists({exact.get(), block.bytes.size()}, block.lengths,
                                       block.degrees, {list.get(), count}, limit);
  if (!done) return done.error();
  return Neighbours(list.get(), list.get() + count);
}

TEST_P(EachCodecTest, DecodesListsOneAfterTheOther) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 600; ++round) {
    const size_t degree_max =
        std::array<size_t, 5>{1, 3, 8, 70, 400}[static_cast<size_t>(round) % 5];
    const ListsBlock block =
        random_block(random, codec_, static_cast<size_t>(round) % 97, degree_max,
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

// Decoding together gives the same as decoding each list.
TEST_P(EachCodecTest, DamagedListsOneAfterTheOtherAreAnErrorOrOthersBelowTheLimit) {
  std::mt19937_64 random(14);
  for (int round = 0; round < 3000; ++round) {
    ListsBlock block = random_block(random, codec_, 1 + random() % 30, 1 + random() % 40, 12);
    const uint64_t limit =
        uint64_t{*std::max_element(block.neighbours.begin(), block.neighbours.end())} + 1;
    ASSERT_TRUE(decoded_block(codec_, block, limit));
    switch (round % 4) {
      case 0:
        block.bytes[random() % block.bytes.size()] ^= static_cast<uint8_t>(1 << random() % 8);
        break;
      case 1:
        block.lengths[random() % block.lengths.size()] ^= static_cast<uint32_t>(1 << random() % 4);
        break;
      case 2:
        block.degrees[random() % block.degrees.size()] ^= static_cast<uint32_t>(1 << random() % 4);
        break;
      default: block.bytes.resize(random() % block.bytes.size()); break;
    }
    const auto back = decoded_block(codec_, block, limit);
    // Each list alone gives the same.
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

// Without degrees, sound and damaged lists decode as each of them alone.
TEST_P(EachCodecTest, CountsAndDecodesListsOneAfterTheOther) {
  if (codec_.group_vertices() > 1) {
    GTEST_SKIP() << "not applicable: its lists may have more numbers than bytes";
  }
  std::mt19937_64 random(15);
  for (int round = 0; round < 3000; ++round) {
    ListsBlock block =
        random_block(random, codec_, 1 + random() % 60, 1 + random() % 70, 1 + round % 31);
    const uint64_t limit =
        uint64_t{*std::max_element(block.neighbours.begin(), block.neighbours.end())} + 1;
    switch (round % 4) {
      case 0: break;
      case 1:
        block.bytes[random() % block.bytes.size()] ^= static_cast<uint8_t>(1 << random() % 8);
        break;
      case 2:
        block.lengths[random() % block.lengths.size()] ^= static_cast<uint32_t>(1 << random() % 4);
        break;
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
      const auto list =
          count ? decoded(codec_, bytes, *count, limit) : Result<Neighbours>(Errno{EIO});
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

struct Group {
  Neighbours vertices;
  std::vector<Neighbours> lists;
};

ListBytes encoded_group(const Group& group) {
  const ListCodec& codec = ListCodec::of(CodecKind::kReference);
  std::vector<VertexList> lists;
  size_t bytes_max = 0;
  for (size_t i = 0; i < group.lists.size(); ++i) {
    lists.push_back({group.vertices[i], group.lists[i]});
    bytes_max += codec.bytes_max(group.lists[i].size());
  }
  ListBytes bytes(bytes_max);
  bytes.resize(codec.encode_group(lists, bytes.data()));
  return bytes;
}

// In memory that ends with the bytes. Behind lists that are there.
Result<std::vector<Neighbours>> decoded_group(const ListBytes& bytes, const Neighbours& vertices,
                                              uint64_t limit = kNoLimit,
                                              uint64_t arcs_max = 1 << 20) {
  std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  std::vector<uint32_t> starts = {0, 2}, neighbours = {7, 8};
  const auto done =
      ListCodec::of(CodecKind::kReference)
          .decode_group({exact.get(), bytes.size()}, vertices, limit, arcs_max, starts, neighbours);
  if (!done) return done.error();
  EXPECT_EQ(starts.size(), vertices.size() + 2);
  EXPECT_EQ((std::vector<uint32_t>(neighbours.begin(), neighbours.begin() + 2)),
            (std::vector<uint32_t>{7, 8}));
  std::vector<Neighbours> lists;
  for (size_t i = 1; i + 1 < starts.size(); ++i) {
    lists.emplace_back(neighbours.begin() + starts[i], neighbours.begin() + starts[i + 1]);
  }
  return lists;
}

// Lists that are like those before: some numbers are left out, some come in, some runs are dense.
Group random_group(std::mt19937_64& random, bool repeats) {
  Group group;
  for (uint32_t vertex = static_cast<uint32_t>(random() % 3); vertex < 32;
       vertex += 1 + static_cast<uint32_t>(random() % 4)) {
    Neighbours list;
    if (!group.lists.empty() && random() % 4 != 0) {
      for (const uint32_t neighbour : group.lists[random() % group.lists.size()]) {
        if (random() % 8 != 0) list.push_back(neighbour);
      }
    }
    for (size_t more = random() % 12; more > 0; --more) {
      list.push_back(static_cast<uint32_t>(random() % (random() % 2 == 0 ? 300 : 1 << 20)));
    }
    const auto dense = static_cast<uint32_t>(random() % 5000);
    for (uint32_t n = 0; n < random() % 20; ++n) list.push_back(dense + n);
    list.push_back(static_cast<uint32_t>(random() % 1000));
    std::sort(list.begin(), list.end());
    if (!repeats) list.erase(std::unique(list.begin(), list.end()), list.end());
    group.vertices.push_back(vertex);
    group.lists.push_back(std::move(list));
  }
  return group;
}

// The bits are those of FORMAT.md.
TEST(ReferenceCodecTest, WritesTheExampleOfTheFormatPage) {
  const Group group{{4, 5, 6}, {{2, 5, 300}, {2, 3, 5, 300}, {10, 11, 12, 13, 14}}};
  const ListBytes bytes = encoded_group(group);
  EXPECT_EQ(bytes, (ListBytes{0x12, 0x7c, 0xb3, 0x27, 0x22, 0xf0, 0xb4, 0x85, 0x00}));
  const Group repeats{{0, 2}, {{1, 1, 4}, {1, 1, 4}}};
  EXPECT_EQ(encoded_group(repeats), (ListBytes{0x40, 0x6e, 0x46, 0xa0}));
  const auto back = decoded_group(bytes, group.vertices);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, group.lists);
}

TEST(ReferenceCodecTest, GroupsComeBack) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 2000; ++round) {
    const Group group = random_group(random, round % 2 == 0);
    const auto back = decoded_group(encoded_group(group), group.vertices);
    ASSERT_TRUE(back) << "round " << round;
    ASSERT_EQ(*back, group.lists) << "round " << round;
  }
}

TEST(ReferenceCodecTest, ListsThatAreAlikeTakeLittle) {
  Group group;
  std::mt19937_64 random(21);
  const Neighbours list = random_list(random, 200, 12);
  for (uint32_t vertex = 0; vertex < 32; ++vertex) {
    group.vertices.push_back(vertex);
    group.lists.push_back(list);
  }
  EXPECT_LT(encoded_group(group).size(),
            encoded(ListCodec::of(CodecKind::kReference), list).size() + 32 * 4);
}

// Not all lists are tried as the one that is referred to: the one that shares most is, wherever it is.
TEST(ReferenceCodecTest, RefersToTheListThatSharesMost) {
  std::mt19937_64 random(24);
  for (const uint32_t like : {0u, 7u, 30u}) {
    Group group;
    for (uint32_t vertex = 0; vertex < 32; ++vertex) {
      group.vertices.push_back(vertex);
      group.lists.push_back(random_list(random, vertex == like ? 5000 : 10 + 100 * vertex, 20));
    }
    const size_t apart = encoded_group(group).size();
    const size_t last = encoded(ListCodec::of(CodecKind::kReference), group.lists[31]).size();
    group.lists[31] = group.lists[like];
    EXPECT_LT(encoded_group(group).size(), apart - last + 16) << "like " << like;
  }
}

// Long lists, and one number very often: what is common is found in steps of some hundred numbers.
TEST(ReferenceCodecTest, LongGroupsComeBack) {
  std::mt19937_64 random(25);
  for (int round = 0; round < 20; ++round) {
    Group group;
    for (uint32_t vertex = 0; vertex < 32; vertex += 1 + static_cast<uint32_t>(random() % 9)) {
      Neighbours list = random_list(random, 1 + random() % 6000, 14);
      if (round % 2 == 0) list.insert(list.end(), random() % 3000, UINT32_MAX - 1 - vertex % 2);
      if (round % 4 == 1 && !group.lists.empty()) list = group.lists.back();
      std::sort(list.begin(), list.end());
      group.vertices.push_back(vertex);
      group.lists.push_back(std::move(list));
    }
    const auto back = decoded_group(encoded_group(group), group.vertices);
    ASSERT_TRUE(back) << "round " << round;
    ASSERT_EQ(*back, group.lists) << "round " << round;
  }
}

TEST(ReferenceCodecTest, LimitsAreKept) {
  std::mt19937_64 random(22);
  for (int round = 0; round < 300; ++round) {
    const Group group = random_group(random, round % 2 == 0);
    const ListBytes bytes = encoded_group(group);
    uint32_t largest = 0;
    uint64_t arcs = 0;
    for (const Neighbours& list : group.lists) {
      largest = std::max(largest, list.back());
      arcs += list.size();
    }
    EXPECT_TRUE(decoded_group(bytes, group.vertices, uint64_t{largest} + 1, arcs));
    EXPECT_FALSE(decoded_group(bytes, group.vertices, largest, arcs));
    EXPECT_FALSE(decoded_group(bytes, group.vertices, kNoLimit, arcs - 1));
    Neighbours fewer(group.vertices.begin(), group.vertices.end() - 1);
    EXPECT_FALSE(decoded_group(bytes, fewer)) << "round " << round;
  }
}

TEST(ReferenceCodecTest, EveryTruncationIsAnErrorAndEveryFlippedBitAnErrorOrOtherLists) {
  std::mt19937_64 random(23);
  for (int round = 0; round < 20; ++round) {
    const Group group = random_group(random, round % 2 == 0);
    const ListBytes bytes = encoded_group(group);
    const uint64_t limit = 1 << 20;
    for (size_t length = 0; length < bytes.size(); ++length) {
      ASSERT_FALSE(decoded_group({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)},
                                 group.vertices, limit));
    }
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      ListBytes damaged = bytes;
      damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      const auto back = decoded_group(damaged, group.vertices, limit);
      if (!back) continue;
      for (const Neighbours& list : *back) {
        for (const uint32_t neighbour : list) ASSERT_LT(neighbour, limit) << "bit " << bit;
      }
    }
  }
}

TEST(ReferenceCodecTest, FormatsWithoutGroupsRefuseIt) {
  EXPECT_TRUE(check_codec_of_lists(CodecKind::kVarint, "lists"));
  EXPECT_EQ(check_codec_of_lists(CodecKind::kReference, "lists").error().text,
            "lists has no groups of lists, which the codec reference needs (choose raw, varint or "
            "simd, or the format dual)");
}

INSTANTIATE_TEST_SUITE_P(Codecs, EachCodecTest, testing::ValuesIn(kAllCodecs),
                         [](const auto& row) { return std::string(name_of(row.param)); });

}  // namespace
}  // namespace graphlane::graphfmt
