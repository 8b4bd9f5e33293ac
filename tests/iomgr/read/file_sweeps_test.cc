// FileSweeps: which ranges a sweep over files prefetches, in how much of the page cache, and whether
// they are used.
#include "iomgr/read/file_sweeps.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/sizes.h"

namespace graphlane {
namespace {

class FileSweepsTest : public ::testing::Test {
 protected:
  // Reads a range in MiB, while `bytes_max` of the page cache may be prefetched. Returns the ranges
  // to prefetch, as "b:0-12 c:0-4".
  std::string read(char name, uint64_t begin, uint64_t end, uint64_t bytes_max = 16 * kMiB) {
    sweeps_->set_available(4 * bytes_max);
    return read_on(name, begin, end);
  }
  std::string read_on(char name, uint64_t begin, uint64_t end) {
    const ByteRange range{.offset = begin * kMiB, .length_bytes = (end - begin) * kMiB};
    (void)sweeps_->arrive(id(name), range);
    std::string text;
    for (const auto& next : sweeps_->prefetches_after(id(name), range, size_bytes_)) {
      const auto letter = static_cast<char>(next.file_id.bytes[0]);
      text += std::string(text.empty() ? 0 : 1, ' ') + letter + ":" +
              std::to_string(next.range.offset / kMiB) + "-" +
              std::to_string(next.range.end() / kMiB);
    }
    return text;
  }
  static Uuid id(char name) {
    Uuid uuid;
    uuid.bytes[0] = static_cast<uint8_t>(name);
    return uuid;
  }
  uint64_t size_bytes_ = 64 * kMiB;
  const std::unique_ptr<FileSweeps> sweeps_ = std::make_unique<FileSweeps>();
};

TEST_F(FileSweepsTest, TheFirstSweepPredictsNothing) {
  for (char name = 'a'; name <= 'f'; ++name) EXPECT_EQ(read(name, 0, 12 + name % 3), "");
}

TEST_F(FileSweepsTest, SequentialReadsPredictUpToTheEndOfTheFile) {
  EXPECT_EQ(read('a', 0, 4, 8 * kMiB), "") << "one read goes nowhere";
  EXPECT_EQ(read('a', 4, 8, 8 * kMiB), "a:8-16");
  EXPECT_EQ(read('a', 8, 12, 8 * kMiB), "a:16-20");
  EXPECT_EQ(read('a', 48, 52, 8 * kMiB), "") << "elsewhere, once";
  EXPECT_EQ(read('a', 52, 56, 40 * kMiB), "a:56-64");
}

TEST_F(FileSweepsTest, StridesPredictUpToTheEndOfTheFile) {
  for (uint64_t begin = 0; begin < 30; begin += 10) EXPECT_EQ(read('a', begin, begin + 2), "");
  EXPECT_EQ(read('a', 30, 32, 5 * kMiB), "a:40-42 a:50-52");
  EXPECT_EQ(read('a', 40, 42), "a:60-62");
}

TEST_F(FileSweepsTest, AnUnknownSizeAllowsNoGuesses) {
  size_bytes_ = 0;
  for (uint64_t begin = 0; begin < 40; begin += 4) EXPECT_EQ(read('a', begin, begin + 4), "");
  EXPECT_EQ(read('a', 0, 4, 8 * kMiB), "a:4-12");
}

TEST_F(FileSweepsTest, TheSecondSweepOverFilesIsAsTheFirst) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 12);
  EXPECT_EQ(read('a', 0, 12), "b:0-12");
  EXPECT_EQ(read('b', 0, 12), "c:0-12");
}

TEST_F(FileSweepsTest, AfterTheLastFileTheFirstComes) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 12);
  for (char name = 'a'; name <= 'k'; ++name) read(name, 0, 12);
  EXPECT_EQ(read('l', 0, 12), "a:0-12");
}

TEST_F(FileSweepsTest, SeveralRangesArePredictedIfThereIsRoom) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 4);
  EXPECT_EQ(read('a', 0, 4, 12 * kMiB), "b:0-4 c:0-4 d:0-4");
  EXPECT_EQ(read('b', 0, 4, 12 * kMiB), "e:0-4") << "what was told is not told again";
}

TEST_F(FileSweepsTest, ALargeRangeWaitsForRoomUnlessItIsTheOnlyOne) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 12);
  EXPECT_EQ(read('a', 0, 12, 8 * kMiB), "b:0-8");
  EXPECT_EQ(read('b', 0, 12, 20 * kMiB), "c:0-12") << "and not 8 of d";
}

// GraphChi's sliding windows: a piece of each shard, which moves on in each interval.
TEST_F(FileSweepsTest, WindowsOfManyFilesArePredictedInOrder) {
  constexpr int kFiles = 12;
  for (int interval = 0; interval < kFiles; ++interval) {
    for (int file = 0; file < kFiles; ++file) {
      read(static_cast<char>('a' + file), static_cast<uint64_t>(interval),
           static_cast<uint64_t>(interval) + 1);
    }
  }
  EXPECT_EQ(read('a', 0, 1, 3 * kMiB), "b:0-1 c:0-1 d:0-1");
}

TEST_F(FileSweepsTest, MostlyWrongPredictionsPause) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 12);
  for (int times = 0; times < 40; ++times) {  // the predicted ranges are never read
    read('a', 0, 12);
    read('m', static_cast<uint64_t>(times) * 20, static_cast<uint64_t>(times) * 20 + 12);
  }
  EXPECT_EQ(read('b', 0, 12), "");
}

TEST_F(FileSweepsTest, SkippedPredictionsTakeNoRoom) {
  for (char name = 'a'; name <= 'l'; ++name) read(name, 0, 1);
  EXPECT_EQ(read('a', 0, 1, 8 * kMiB), "b:0-1 c:0-1 d:0-1 e:0-1 f:0-1 g:0-1 h:0-1 i:0-1");
  // d to g may come late; b and c do not come
  EXPECT_EQ(read('h', 0, 1, 8 * kMiB), "j:0-1 k:0-1 l:0-1");
}

TEST_F(FileSweepsTest, AReadReturnsItsPredictedBytes) {
  for (char name = 'a'; name <= 'd'; ++name) read(name, 0, 12);
  read('a', 0, 12);
  EXPECT_EQ(sweeps_->arrive(id('b'), {.offset = 0, .length_bytes = 12 * kMiB}), 12 * kMiB);
  EXPECT_EQ(sweeps_->arrive(id('x'), {.offset = 0, .length_bytes = 12 * kMiB}), 0u);
}

TEST_F(FileSweepsTest, UsedAndUnusedBytesAreCounted) {
  for (char name = 'a'; name <= 'f'; ++name) read(name, 0, 12);
  read('a', 0, 12);
  read('b', 4, 12, 0);
  EXPECT_EQ(sweeps_->stats().prefetched_bytes, 12 * kMiB);
  EXPECT_EQ(sweeps_->stats().used_bytes, 8 * kMiB);
  EXPECT_EQ(sweeps_->stats().unused_bytes, 4 * kMiB) << "passed over";
  read('e', 0, 12);
  for (uint64_t begin = 0; begin < 200; begin += 20) read('x', begin, begin + 20, 0);
  EXPECT_EQ(sweeps_->stats().prefetched_bytes, 24 * kMiB);
  EXPECT_EQ(sweeps_->stats().unused_bytes, 16 * kMiB) << "nobody came for f";
}

TEST_F(FileSweepsTest, PrefetchesNothingBeforeTheMemoryIsKnown) {
  for (int sweep = 0; sweep < 2; ++sweep) {
    for (char name = 'a'; name <= 'c'; ++name) EXPECT_EQ(read_on(name, 0, 4), "");
  }
}

TEST_F(FileSweepsTest, PrefetchesSixteenMibAtMost) {
  for (char name = 'a'; name <= 'h'; ++name) read(name, 0, 4, 64 * kMiB);
  EXPECT_EQ(read('a', 0, 4, 64 * kMiB), "b:0-4 c:0-4 d:0-4 e:0-4");
}

TEST_F(FileSweepsTest, PrefetchesTheLengthOfALongStep) {
  for (char name = 'a'; name <= 'c'; ++name) read(name, 0, 20, 64 * kMiB);
  EXPECT_EQ(read('a', 0, 20, 64 * kMiB), "b:0-20");
}

TEST_F(FileSweepsTest, LooksAtTheMemoryFirstAndEvery32Mib) {
  EXPECT_TRUE(sweeps_->is_memory_check_due(1));
  EXPECT_FALSE(sweeps_->is_memory_check_due(32 * kMiB - 1));
  EXPECT_TRUE(sweeps_->is_memory_check_due(1));
  EXPECT_FALSE(sweeps_->is_memory_check_due(1));
  sweeps_->check_memory_soon();
  EXPECT_TRUE(sweeps_->is_memory_check_due(1));
}

}  // namespace
}  // namespace graphlane
