// ReadOrder predicts the next reads from an earlier sweep.
#include "iomgr/read/pattern/read_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/sizes.h"

namespace graphlane {
namespace {

using Guess = ReadOrder::Guess;

constexpr uint64_t kSize = 4800 * kMiB;
constexpr ByteRange kAll{.offset = 0, .length_bytes = kSize};

class ReadOrderTest : public ::testing::Test {
 protected:
  // In MiB.
  void read(uint64_t begin, uint64_t end) {
    last_ = {.offset = begin * kMiB, .length_bytes = (end - begin) * kMiB};
    order_.add(last_, kAll);
  }
  void sweep(uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; at += 24) read(at, std::min(at + 24, end));
  }
  // "48-240 0-24" after the last read.
  std::string next(bool is_sequential = false, size_t count_max = 16,
                   ByteRange scope = kAll) const {
    ByteRange ranges[16];
    const uint32_t count =
        order_.predict(last_, is_sequential ? Guess::kSequential : Guess::kStride, scope,
                       std::span(ranges).first(count_max));
    std::string text;
    for (uint32_t i = 0; i < count; ++i) {
      text += std::to_string(ranges[i].offset / kMiB) + "-" +
              std::to_string(ranges[i].end() / kMiB) + " ";
    }
    return text;
  }
  ReadOrder order_;
  ByteRange last_;
};

TEST_F(ReadOrderTest, AFirstReadPredictsNothing) {
  sweep(0, 240);
  EXPECT_EQ(next(), "");
}

TEST_F(ReadOrderTest, ASequenceGoesOnToTheEndOfTheFile) {
  sweep(0, 240);
  EXPECT_EQ(next(true), "240-4800 ");
  EXPECT_EQ(next(true, 16, {.offset = 24 * kMiB, .length_bytes = 264 * kMiB}), "240-288 ");
}

TEST_F(ReadOrderTest, TheSecondSweepIsAsTheFirst) {
  sweep(0, 240);
  sweep(0, 48);
  EXPECT_EQ(next(), "48-240 0-48 ");
}

TEST_F(ReadOrderTest, TheEndOfASweepPredictsTheNextOne) {
  sweep(0, 240);
  sweep(0, 240);
  EXPECT_EQ(next(true), "0-240 ") << "it did not go on to the end of the file";
}

TEST_F(ReadOrderTest, SkipsAreRepeated) {
  sweep(0, 96);
  sweep(192, 240);
  sweep(0, 96);
  EXPECT_EQ(next(), "192-240 0-96 ");
  sweep(192, 216);
  EXPECT_EQ(next(), "216-240 0-96 192-216 ");
}

TEST_F(ReadOrderTest, TheLastSweepOverridesEarlierOnes) {
  sweep(0, 240);
  sweep(0, 96);
  sweep(192, 240);
  sweep(0, 48);
  EXPECT_EQ(next(), "48-96 192-240 0-48 ");
}

TEST_F(ReadOrderTest, AnOrderThatIsNotUpwardsIsReplayed) {
  for (int i = 0; i < 2; ++i) {
    for (const uint64_t at : {480u, 0u, 960u, 240u}) sweep(at, at + 72);
  }
  sweep(480, 504);
  EXPECT_EQ(next(), "504-552 0-72 960-1032 240-312 480-504 ");
}

// Six threads take the blocks in turn. Blocks in flight are not predicted.
TEST_F(ReadOrderTest, ThreadsOutOfOrderAreOneRun) {
  std::mt19937 random(3);
  for (int i = 0; i < 3; ++i) {
    std::vector<uint64_t> blocks;
    for (uint64_t at = 0; at < 960; at += 24) blocks.push_back(at);
    for (size_t b = 0; b + 4 <= blocks.size(); b += 4) {
      std::shuffle(blocks.begin() + b, blocks.begin() + b + 4, random);
    }
    for (const uint64_t at : blocks) read(at, at + 24);
    EXPECT_EQ(next(), i == 0 ? "" : "0-960 ");
  }
}

TEST_F(ReadOrderTest, ALateThreadDoesNotTurnTheSweepBack) {
  sweep(0, 480);
  read(0, 24);
  read(48, 72);
  read(24, 48);
  EXPECT_EQ(next(), "72-480 0-72 ");
  read(120, 144);
  read(72, 96);
  EXPECT_EQ(next(), "144-480 0-96 120-144 ") << "96-120 is another thread's";
}

// Each reads piece by piece. The gap between them is still to come; ranges that the other has read
// are not.
TEST_F(ReadOrderTest, AReaderThatReadsOnHasItsOwnPlace) {
  for (uint64_t i = 0; i < 4; ++i) {
    read(i, i + 1);
    read(24 + i, 25 + i);
  }
  read(4, 5);
  EXPECT_EQ(next(true), "5-24 28-4800 ");
  read(28, 29);
  EXPECT_EQ(next(true), "29-4800 ");
}

// That includes the last read: it is no second sweep over the other reader's range.
TEST_F(ReadOrderTest, AGapBetweenTwoReadersCountsAsUnread) {
  read(0, 1);
  read(4, 5);
  read(1, 2);
  read(5, 6);
  read(2, 3);
  EXPECT_EQ(next(true), "3-4 6-4800 ");
  read(6, 7);
  read(3, 4);
  EXPECT_EQ(next(true), "7-4800 ");
}

TEST_F(ReadOrderTest, AStrideGoesOn) {
  for (uint64_t at = 100; at < 100 + 5 * 150; at += 150) read(at, at + 10);
  EXPECT_EQ(next(false, 3), "850-860 1000-1010 1150-1160 ");
}

TEST_F(ReadOrderTest, AStrideOfSeveralThreads) {
  for (const uint64_t at : {0u, 300u, 150u, 600u, 450u}) read(at, at + 10);
  EXPECT_EQ(next(false, 2), "750-760 900-910 ");
}

TEST_F(ReadOrderTest, RandomReadsAreNoStride) {
  for (const uint64_t at : {0u, 300u, 150u, 700u, 450u}) read(at, at + 10);
  EXPECT_EQ(next(), "");
}

TEST_F(ReadOrderTest, NothingIsGuessedWithoutLeave) {
  for (uint64_t at = 100; at < 100 + 5 * 150; at += 150) read(at, at + 10);
  ByteRange ranges[16];
  EXPECT_EQ(order_.predict(last_, Guess::kNone, kAll, ranges), 0u);
  read(100, 110);
  EXPECT_EQ(order_.predict(last_, Guess::kNone, kAll, ranges), 5u) << "the last sweep's";
}

TEST_F(ReadOrderTest, ARepeatedReadAddsNoRun) {
  sweep(0, 240);
  sweep(0, 48);
  for (int i = 0; i < 1000; ++i) read(24, 48);
  EXPECT_EQ(next(), "48-240 0-48 ");
}

TEST_F(ReadOrderTest, TheOldestRunsAreForgottenFirst) {
  const auto read_apart = [&](uint64_t at) {
    last_ = {.offset = at * 3 * kMiB / 2 + at % 3 * 4096, .length_bytes = 4096};
    order_.add(last_, kAll);
  };
  for (int i = 0; i < 2; ++i) {
    for (uint64_t at = 0; at < 5000; ++at) read_apart(at);
  }
  EXPECT_EQ(next(), "") << "5000 runs a sweep";
  for (int i = 0; i < 2; ++i) {
    for (uint64_t at = 0; at < 60; ++at) read(at * 10 + at % 3, at * 10 + at % 3 + 1);
  }
  EXPECT_EQ(next(false, 2), "0-1 11-12 ");
}

// After any reads, predictions lie in the scope, and none is empty.
TEST_F(ReadOrderTest, ForecastsStayWithinTheScope) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t offset = random() % (kSize / 64);
    const ByteRange range{offset, 1 + random() % (8 * kMiB)};
    order_.add(range, kAll);
    ByteRange ranges[5];
    const ByteRange scope{.offset = random() % (kSize / 50),
                          .length_bytes = random() % (64 * kMiB)};
    const uint32_t count = order_.predict(range, static_cast<Guess>(random() % 4), scope, ranges);
    ASSERT_LE(count, 5u) << "seed " << seed;
    for (uint32_t k = 0; k < count; ++k) {
      ASSERT_GT(ranges[k].length_bytes, 0u) << "seed " << seed;
      ASSERT_GE(ranges[k].offset, scope.offset) << "seed " << seed;
      ASSERT_LE(ranges[k].end(), scope.end()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace graphlane
