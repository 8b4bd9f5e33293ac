// SequencePredictor predicts the next reads over all files from earlier sweeps.
#include "iomgr/read/pattern/sequence_predictor.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/sizes.h"

namespace graphlane {
namespace {

class SequencePredictorTest : public ::testing::Test {
 protected:
  // The predictions in MiB, as "b:0-12 c:0-4".
  std::string read(char name, uint64_t begin, uint64_t end, uint64_t bytes_max = 16 * kMiB) {
    const ByteRange range{.offset = begin * kMiB, .length_bytes = (end - begin) * kMiB};
    reads_->arrive(id(name), range);
    SequencePredictor::Prediction next[8];
    const uint32_t count = reads_->predict(id(name), range, size_bytes_, bytes_max, next);
    std::string text;
    for (uint32_t i = 0; i < count; ++i) {
      const auto letter = static_cast<char>(next[i].file_id.bytes[0]);
      text += std::string(text.empty() ? 0 : 1, ' ') + letter + ":" +
              std::to_string(next[i].range.offset / kMiB) + "-" +
              std::to_string(next[i].range.end() / kMiB);
    }
    return text;
  }
  static Uuid id(char name) {
    Uuid uuid;
    uuid.bytes[0] = static_cast<uint8_t>(name);
    return uuid;
  }
  uint64_t size_bytes_ = 64 * kMiB;
  const std::unique_ptr<SequencePredictor> reads_ = std::make_unique<SequencePredictor>();
};

TEST_F(SequencePredictorTest, TheFirstSweepPredictsNothing) {
  for (char name = 'a'; name <= 'f'; ++name) EXPECT_EQ(read(name, 0, 12 + name % 3), "");
}

TEST_F(SequencePredictorTest, SequentialReadsPredictUpToTheEndOfTheFile) {
  EXPECT_EQ(read('a', 0, 4, 8 * kMiB), "") << "one read goes nowhere";
  EXPECT_EQ(read('a', 4, 8, 8 * kMiB), "a:8-16");
  EXPECT_EQ(read('a', 8, 12, 8 * kMiB), "a:16-20");
  EXPECT_EQ(read('a', 48, 52, 8 * kMiB), "") << "elsewhere, once";
  EXPECT_EQ(read('a', 52, 56, 40 * kMiB), "a:56-64");
}

TEST_F(SequencePredictorTest, StridesPredictUpToTheEndOfTheFile) {
  for (uint64_t begin = 0; begin < 30; begin += 10) EXPECT_EQ(read('a', begin, begin + 2), "");
  EXPECT_EQ(read('a', 30, 32, 5 * kMiB), "a:40-42 a:50-52");
  EXPECT_EQ(read('a', 40, 42), "a:60-62");
}

TEST_F(SequencePredictorTest, AnUnknownSizeAllowsNoGuesses) {
  size_bytes_ = 0;
  for (uint64_t begin = 0; begin < 40; begin += 4) EXPECT_EQ(read('a', begin, begin + 4), "");
  EXPECT_EQ(read('a', 0, 4, 8 * kMiB), "a:4-12");
}

TEST_F(SequencePredictorTest, TheSecondSweepOverFilesIsAsTheFirst) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 12);
  EXPECT_EQ(read('a', 0, 12), "b:0-12");
  EXPECT_EQ(read('b', 0, 12), "c:0-12");
}

TEST_F(SequencePredictorTest, AfterTheLastFileTheFirstComes) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 12);
  for (char name = 'a'; name <= 'k'; ++name) read(name, 0, 12);
  EXPECT_EQ(read('l', 0, 12), "a:0-12");
}

TEST_F(SequencePredictorTest, SeveralRangesArePredictedIfThereIsRoom) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 4);
  EXPECT_EQ(read('a', 0, 4, 12 * kMiB), "b:0-4 c:0-4 d:0-4");
  EXPECT_EQ(read('b', 0, 4, 12 * kMiB), "e:0-4") << "what was told is not told again";
}

TEST_F(SequencePredictorTest, ALargeRangeWaitsForRoomUnlessItIsTheOnlyOne) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 12);
  EXPECT_EQ(read('a', 0, 12, 8 * kMiB), "b:0-8");
  EXPECT_EQ(read('b', 0, 12, 20 * kMiB), "c:0-12") << "and not 8 of d";
}

// GraphChi's sliding windows: a piece of each shard, which moves on in each interval.
TEST_F(SequencePredictorTest, WindowsOfManyFilesArePredictedInOrder) {
  constexpr int kFiles = 12;
  for (int interval = 0; interval < kFiles; ++interval) {
    for (int file = 0; file < kFiles; ++file) {
      read(static_cast<char>('a' + file), static_cast<uint64_t>(interval),
           static_cast<uint64_t>(interval) + 1);
    }
  }
  EXPECT_EQ(read('a', 0, 1, 3 * kMiB), "b:0-1 c:0-1 d:0-1");
}

TEST_F(SequencePredictorTest, MostlyWrongPredictionsPause) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 12);
  for (int times = 0; times < 40; ++times) {  // the predicted ranges are never read
    read('a', 0, 12);
    read('m', static_cast<uint64_t>(times) * 20, static_cast<uint64_t>(times) * 20 + 12);
  }
  EXPECT_EQ(read('b', 0, 12), "");
}

TEST_F(SequencePredictorTest, SkippedPredictionsTakeNoRoom) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 1);
  EXPECT_EQ(read('a', 0, 1, 8 * kMiB), "b:0-1 c:0-1 d:0-1 e:0-1 f:0-1 g:0-1 h:0-1 i:0-1");
  // d to g may come late; b and c do not come
  EXPECT_EQ(read('h', 0, 1, 8 * kMiB), "j:0-1 k:0-1 l:0-1");
}

TEST_F(SequencePredictorTest, AReadReturnsItsPredictedBytes) {
  for (char name = 'a'; name <= 'd'; ++name) read(name, 0, 12);
  read('a', 0, 12);
  EXPECT_EQ(reads_->arrive(id('b'), {.offset = 0, .length_bytes = 12 * kMiB}), 12 * kMiB);
  EXPECT_EQ(reads_->arrive(id('x'), {.offset = 0, .length_bytes = 12 * kMiB}), 0u);
}

TEST_F(SequencePredictorTest, UsedAndUnusedBytesAreCounted) {
  for (char name = 'a'; name <= 'f'; ++name) read(name, 0, 12);
  read('a', 0, 12);
  read('b', 4, 12, 0);
  EXPECT_EQ(reads_->stats().prefetched_bytes, 12 * kMiB);
  EXPECT_EQ(reads_->stats().used_bytes, 8 * kMiB);
  EXPECT_EQ(reads_->stats().unused_bytes, 4 * kMiB) << "passed over";
  read('e', 0, 12);
  for (uint64_t begin = 0; begin < 200; begin += 20) read('x', begin, begin + 20, 0);
  EXPECT_EQ(reads_->stats().prefetched_bytes, 24 * kMiB);
  EXPECT_EQ(reads_->stats().unused_bytes, 16 * kMiB) << "nobody came for f";
}

}  // namespace
}  // namespace graphlane
