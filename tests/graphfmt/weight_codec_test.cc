#include "graphfmt/codec/weight_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

namespace graphlane::graphfmt {
namespace {

template <class T>
std::vector<uint8_t> bytes_of_weights(const std::vector<T>& weights) {
  std::vector<uint8_t> bytes(weights.size() * sizeof(T));
  if (!weights.empty()) std::memcpy(bytes.data(), weights.data(), bytes.size());
  return bytes;
}

struct Encoded {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> table;
  double bits_a_weight(size_t count) const {
    return 8.0 * static_cast<double>(codes.size()) / static_cast<double>(count);
  }
};

// `pieces`: how many bytes are given at a time.
Encoded encode_all(WeightKind kind, const std::vector<uint8_t>& weights, size_t piece = 1 << 20) {
  WeightWriter writer(kind);
  Encoded encoded;
  for (size_t at = 0; at < weights.size(); at += piece) {
    writer.append(std::span(weights).subspan(at, std::min(piece, weights.size() - at)),
                  encoded.codes);
  }
  writer.finish(encoded.codes);
  EXPECT_EQ(writer.bytes(), encoded.codes.size());
  encoded.table = writer.table();
  return encoded;
}

Outcome<WeightTable> parse_table(const Encoded& encoded, WeightKind kind, uint64_t count) {
  std::span<const uint8_t> rest(encoded.table);
  auto table = WeightTable::parse(rest, kind, count, "index", encoded.table.size());
  EXPECT_TRUE(!table || rest.empty());
  return table;
}

// Everything comes back bit for bit: all weights, and those of lists anywhere, from exactly their bytes. Returns the bits a
// weight takes.
template <class T>
double round_trip(WeightKind kind, const std::vector<T>& weights) {
  const std::vector<uint8_t> stored = bytes_of_weights(weights);
  const Encoded encoded = encode_all(kind, stored);
  EXPECT_EQ(encode_all(kind, stored, 7 * sizeof(T)).codes, encoded.codes);
  const auto table = parse_table(encoded, kind, weights.size());
  EXPECT_TRUE(table) << table.error().text;
  EXPECT_EQ(table->bytes(), encoded.codes.size());
  std::mt19937_64 random(weights.size());
  for (int round = 0; round < 200; ++round) {
    const uint64_t first = round == 0 ? 0 : random() % (weights.size() + 1);
    const uint64_t most = weights.size() - first;
    const uint64_t count =
        round == 0 ? most : std::min<uint64_t>(most, random() % (round % 2 == 0 ? 10 : 9000));
    const ByteRange range = table->range(first, count);
    // Memory of exactly these bytes, so that the sanitizer sees a read behind them.
    const std::vector<uint8_t> codes(encoded.codes.begin() + static_cast<ptrdiff_t>(range.offset),
                                     encoded.codes.begin() + static_cast<ptrdiff_t>(range.end()));
    std::vector<T> back(count);
    EXPECT_TRUE(
        table->decode_stored(first, count, reinterpret_cast<uint8_t*>(back.data()), codes.data()));
    EXPECT_TRUE(count == 0 ||
                std::memcmp(back.data(), weights.data() + first, count * sizeof(T)) == 0)
        << first << " " << count;
    std::vector<double> numbers(count),
        expected(weights.begin() + static_cast<ptrdiff_t>(first),
                 weights.begin() + static_cast<ptrdiff_t>(first + count));
    EXPECT_TRUE(table->decode(first, numbers, codes.data()));
    EXPECT_TRUE(count == 0 ||
                std::memcmp(numbers.data(), expected.data(), count * sizeof(double)) == 0);
    std::vector<uint8_t> with_slack = codes;
    with_slack.resize(codes.size() + 8, 0xff);
    std::fill(numbers.begin(), numbers.end(), -1);
    EXPECT_TRUE(table->decode(first, numbers, with_slack.data(), 8));
    EXPECT_TRUE(count == 0 ||
                std::memcmp(numbers.data(), expected.data(), count * sizeof(double)) == 0);
  }
  return encoded.bits_a_weight(weights.size());
}

template <class T>
std::vector<T> make_weights(size_t count, const std::function<T(std::mt19937_64&)>& one) {
  std::mt19937_64 random(count);
  std::vector<T> weights;
  for (size_t i = 0; i < count; ++i) weights.push_back(one(random));
  return weights;
}

TEST(WeightCodecTest, SmallWholeNumbersTakeTheirBits) {
  const auto below_64 = [](auto& random) { return static_cast<float>(1 + random() % 64); };
  EXPECT_LT((round_trip<float>(WeightKind::kFloat32, make_weights<float>(20'000, below_64))), 6.01);
  const auto of_int64 = [](auto& random) {
    return int64_t{-5'000'000'000} + static_cast<int64_t>(random() % 1000);
  };
  EXPECT_LT((round_trip<int64_t>(WeightKind::kInt64, make_weights<int64_t>(20'000, of_int64))),
            10.01);
}

TEST(WeightCodecTest, AnOutlierWidensItsFrameAlone) {
  std::vector<float> weights(5 * kWeightFrameArcs, 1);
  weights[6000] = 65537;
  EXPECT_LT(round_trip<float>(WeightKind::kFloat32, weights), 3.5);
}

TEST(WeightCodecTest, EqualWeightsHaveNoCodes) {
  EXPECT_EQ(round_trip<double>(WeightKind::kFloat64, std::vector<double>(10'000, 0.1)), 0);
}

TEST(WeightCodecTest, DecimalFractionsAreWholeNumbersOfTheirLastPlace) {
  const auto hundredths = [](auto& random) { return static_cast<double>(random() % 1000) / 100; };
  EXPECT_LT((round_trip<double>(WeightKind::kFloat64, make_weights<double>(9000, hundredths))),
            10.01);
  const auto of_float = [](auto& random) { return static_cast<float>(random() % 1000) / 1000; };
  EXPECT_LT((round_trip<float>(WeightKind::kFloat32, make_weights<float>(9000, of_float))), 10.01);
}

TEST(WeightCodecTest, AFewNumbersOfAnyKindAreInTheDictionary) {
  const std::vector<double> some = {
      M_PI, -0.0, 1e300, 1.0 / 3, std::numeric_limits<double>::denorm_min(), 7, -2};
  const auto one_of = [&](auto& random) { return some[random() % some.size()]; };
  EXPECT_LT((round_trip<double>(WeightKind::kFloat64, make_weights<double>(30'000, one_of))), 3.01);
  const auto powers = [](auto& random) { return int64_t{1} << random() % 63; };
  EXPECT_LT((round_trip<int64_t>(WeightKind::kInt64, make_weights<int64_t>(30'000, powers))), 6.01);
}

TEST(WeightCodecTest, NumbersOfAllBitsStayAsTheyAre) {
  const auto any = [](auto& random) { return std::bit_cast<int64_t>(random()); };
  EXPECT_EQ((round_trip<int64_t>(WeightKind::kInt64, make_weights<int64_t>(10'000, any))), 64);
  const auto any_float = [](auto& random) {
    float number;
    do number = std::bit_cast<float>(static_cast<uint32_t>(random()));
    while (!std::isfinite(number));
    return number;
  };
  EXPECT_EQ((round_trip<float>(WeightKind::kFloat32, make_weights<float>(10'000, any_float))), 32);
  const auto any_double = [](auto& random) { return static_cast<double>(random()) / 3; };
  EXPECT_EQ((round_trip<double>(WeightKind::kFloat64, make_weights<double>(10'000, any_double))),
            64);
  const int64_t ends[] = {INT64_MIN, INT64_MAX, 0, -1};
  const auto of_ends = [&](auto& random) { return ends[random() % 4]; };
  EXPECT_LT((round_trip<int64_t>(WeightKind::kInt64, make_weights<int64_t>(1000, of_ends))), 2.01);
}

TEST(WeightCodecTest, MixedFramesComeBack) {
  std::mt19937_64 random(3);
  for (const size_t count : {0u, 1u, 2u, 7u, 8u, 9u, 4095u, 4096u, 4097u, 30'000u}) {
    std::vector<float> weights;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t r = random();
      switch (i / 3000 % 4) {
        case 0: weights.push_back(static_cast<float>(r % 5000)); break;
        case 1: weights.push_back(r % 2 == 0 ? -0.0f : M_PIf32); break;
        case 2:
          weights.push_back(std::bit_cast<float>(static_cast<uint32_t>(r % 0x7f000000)));
          break;
        default: weights.push_back(static_cast<float>(static_cast<int>(r % 200) - 100) / 4);
      }
    }
    round_trip<float>(WeightKind::kFloat32, weights);
  }
}

TEST(WeightCodecTest, DamagedTablesAndCodesAreErrors) {
  const std::vector<double> some = {M_PI, M_E, M_SQRT2};
  const auto one_of = [&](auto& random) { return some[random() % some.size()]; };
  const auto weights = make_weights<double>(5000, one_of);
  const Encoded sound = encode_all(WeightKind::kFloat64, bytes_of_weights(weights));
  for (size_t length = 0; length < sound.table.size(); ++length) {
    Encoded cut = sound;
    cut.table.resize(length);
    EXPECT_FALSE(parse_table(cut, WeightKind::kFloat64, weights.size())) << length;
  }
  // The fourth code of two bits, of a dictionary of three numbers.
  const auto table = parse_table(sound, WeightKind::kFloat64, weights.size());
  ASSERT_TRUE(table);
  std::vector<double> back(4);
  const uint8_t codes[] = {0xff};
  EXPECT_FALSE(table->decode(0, back, codes));
}

TEST(WeightCodecTest, AValueHasAFrameOfItsOwn) {
  std::mt19937_64 random(1);
  WeightEncoder encoder(WeightKind::kFloat32, nullptr);
  for (const size_t count : {1u, 2u, 10u, 5000u}) {
    for (const float scale : {1.0f, 0.25f, 1e-20f, -3.0f}) {
      std::vector<float> weights;
      for (size_t i = 0; i < count; ++i)
        weights.push_back(static_cast<float>(random() % 100) * scale);
      const std::vector<uint8_t> stored = bytes_of_weights(weights);
      std::vector<uint8_t> bytes;
      append_value_weights(encoder, stored, bytes);
      ASSERT_LE(bytes.size(), stored.size() + kValueWeightsHeadMax);
      const auto parsed = parse_value_weights(WeightKind::kFloat32, bytes, count);
      ASSERT_TRUE(parsed);
      std::vector<float> back(count);
      decode_value_weights(WeightKind::kFloat32, *parsed, count,
                           reinterpret_cast<uint8_t*>(back.data()));
      EXPECT_EQ(std::memcmp(back.data(), weights.data(), stored.size()), 0);
      for (size_t i = 0; i < count; ++i)
        EXPECT_EQ(value_weight(WeightKind::kFloat32, *parsed, i), weights[i]);
      if (parsed->frame.width > 0) {
        EXPECT_FALSE(parse_value_weights(WeightKind::kFloat32, bytes, count + 40));
      }
      EXPECT_FALSE(parse_value_weights(WeightKind::kFloat32,
                                       std::span(bytes).first(bytes.size() - 1), count));
    }
  }
}

}  // namespace
}  // namespace graphlane::graphfmt
