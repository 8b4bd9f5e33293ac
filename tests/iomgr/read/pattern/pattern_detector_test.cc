// PatternDetector: which reads are a stream, and what comes next in a file and in all files.
#include "iomgr/read/pattern/pattern_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/sizes.h"

namespace graphlane {
namespace {

class PatternDetectorTest : public ::testing::Test {
 protected:
  bool observe(ByteRange range) { return patterns_->observe(file_, range); }
  // A step of one MiB.
  void step(const Uuid& file_id, uint64_t mib) {
    patterns_->add_step({.file_id = file_id}, {mib * kMiB, kMiB});
  }
  // The ranges after the step, in MiB: "2-4 8-9".
  std::string next(const Uuid& file_id, uint64_t mib) {
    ByteRange ranges[4];
    const uint32_t count = patterns_->predict_file({.file_id = file_id}, {mib * kMiB, kMiB},
                                                   /*is_sequential=*/false, 64 * kMiB, ranges);
    std::string text;
    for (uint32_t i = 0; i < count; ++i) {
      text += std::string(i == 0 ? 0 : 1, ' ') + std::to_string(ranges[i].offset / kMiB) + "-" +
              std::to_string(ranges[i].end() / kMiB);
    }
    return text;
  }
  static std::vector<Uuid> files(size_t count) {
    std::vector<Uuid> ids(count);
    for (Uuid& id : ids) id = Uuid::random();
    return ids;
  }
  const std::unique_ptr<PatternDetector> patterns_ =
      std::make_unique<PatternDetector>(PatternDetector::RunEnd::kInFile);
  PatternDetector::File file_{.file_id = Uuid::random(), .generation = 1};
};

TEST_F(PatternDetectorTest, TheFirstReadIsNoStreamYet) {
  EXPECT_FALSE(observe({0, kMiB}));
  EXPECT_TRUE(observe({kMiB, kMiB}));
}

// Six threads take the blocks of a sweep in turn.
TEST_F(PatternDetectorTest, ReadsOutOfOrderAreOneStream) {
  std::vector<uint64_t> blocks(200);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = i * 24 * kMiB;
  std::mt19937 random(7);
  for (size_t i = 0; i + 6 <= blocks.size(); i += 6) {
    std::shuffle(blocks.begin() + i, blocks.begin() + i + 6, random);
  }
  int streaming = 0;
  for (const uint64_t block : blocks) streaming += observe({block, 23 * kMiB});
  EXPECT_GT(streaming, 190);
}

TEST_F(PatternDetectorTest, RandomReadsAreNoStream) {
  std::mt19937_64 random(11);
  int streaming = 0;
  for (int i = 0; i < 1000; ++i) streaming += observe({random() % 1000 * kMiB, 16384});
  EXPECT_LT(streaming, 10);
}

// A read of a stream fetches whole frames.
TEST_F(PatternDetectorTest, RandomReadsOfWhatAStreamHasPassedAreNoStream) {
  for (uint64_t i = 0; i < 512; ++i) observe({i * kMiB, kMiB});
  std::mt19937_64 random(13);
  int streaming = 0;
  for (int i = 0; i < 40; ++i) streaming += observe({random() % 500 * kMiB, 4096});
  EXPECT_TRUE(observe({512 * kMiB, kMiB})) << "the stream goes on";
  for (int i = 0; i < 1000; ++i) streaming += observe({random() % 500 * kMiB, 4096});
  EXPECT_LT(streaming, 10);
}

TEST_F(PatternDetectorTest, TwoStreamsOfAFileAreToldApart) {
  for (uint64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(observe({i * kMiB, kMiB}), i > 0);
    EXPECT_EQ(observe({2976 * kMiB + i * kMiB, kMiB}), i > 0);
  }
}

// GraphChi reads a window of each of its shards in turn.
TEST_F(PatternDetectorTest, TracksAStreamInEachOfManyFiles) {
  const std::vector<Uuid> shards = files(48);
  for (uint64_t i = 0; i < 3; ++i) {
    for (const Uuid& shard : shards) {
      file_.file_id = shard;
      EXPECT_EQ(observe({i * kMiB, kMiB}), i > 0);
    }
  }
}

TEST_F(PatternDetectorTest, AnotherGenerationIsAnotherFile) {
  observe({0, kMiB});
  file_.generation = 2;
  EXPECT_FALSE(observe({kMiB, kMiB}));
}

// GraphChi's windows: each sweep reads one piece of each shard after the other.
TEST_F(PatternDetectorTest, WhatFollowsInAFileLeavesOutOtherFiles) {
  const std::vector<Uuid> shards = files(12);
  for (uint64_t window = 0; window < 12; ++window) {
    for (const Uuid& shard : shards) step(shard, 3 * window);
  }
  for (const Uuid& shard : shards) {
    step(shard, 0);
    EXPECT_EQ(next(shard, 0), "3-4 6-7 9-10 12-13");
  }
}

// Threads sweep a file each, more than there are recent runs.
TEST_F(PatternDetectorTest, StepsInOtherFilesEndNoRun) {
  const std::vector<Uuid> shards = files(16);
  for (int sweep = 0; sweep < 2; ++sweep) {
    for (uint64_t mib = 0; mib < (sweep == 0 ? 400 : 10); ++mib) {
      for (const Uuid& shard : shards) step(shard, mib);
    }
  }
  EXPECT_EQ(next(shards[0], 9), "10-64 0-10");
  EXPECT_EQ(next(shards[15], 9), "10-64 0-10");
}

// A second reader of the file does not make its reads new runs.
TEST_F(PatternDetectorTest, AReadThatIsRepeatedAfterOneElsewhereAddsNoRun) {
  const std::vector<Uuid> both = files(2);
  for (uint64_t mib = 0; mib < 20; ++mib) {
    for (int reader = 0; reader < 2; ++reader) {
      for (const Uuid& file : both) step(file, mib);
    }
  }
  EXPECT_EQ(next(both[0], 19), "") << "nothing but a sweep";
}

TEST_F(PatternDetectorTest, WindowsThatTakeTurnsAreRunsOfTheirOwn) {
  PatternDetector all(PatternDetector::RunEnd::kInAnyFile);
  const std::vector<Uuid> shards = files(12);
  for (uint64_t window = 0; window < 3; ++window) {
    for (const Uuid& shard : shards) all.add_step({.file_id = shard}, {window * kMiB, kMiB});
  }
  all.add_step({.file_id = shards[0]}, {0, kMiB});
  PatternDetector::Prediction next[2];
  ASSERT_EQ(all.predict_files({.file_id = shards[0]}, {0, kMiB}, 0, next), 2u);
  EXPECT_EQ(next[0].file_id, shards[1]);
  EXPECT_EQ(next[1].file_id, shards[2]);
  EXPECT_EQ(next[1].range.length_bytes, kMiB);
}

TEST_F(PatternDetectorTest, AStrideIsThatOfOneFile) {
  const std::vector<Uuid> shards = files(12);
  for (uint64_t window = 0; window < 4; ++window) {
    for (const Uuid& shard : shards) step(shard, 3 * window);
  }
  EXPECT_EQ(next(shards[11], 9), "12-13 15-16 18-19 21-22");
  EXPECT_EQ(next(shards[0], 9), "12-13 15-16 18-19 21-22");
}

TEST_F(PatternDetectorTest, AFileThatWasReplacedIsUnknown) {
  const std::vector<Uuid> many = files(300);
  for (const uint64_t mib : {0, 4}) step(many[0], mib);
  for (const Uuid& file : many) step(file, 8);
  for (const uint64_t mib : {0, 4, 8}) step(many[0], mib);
  EXPECT_EQ(next(many[0], 8), "");
  step(many[0], 0);
  EXPECT_EQ(next(many[0], 0), "4-5 8-9 0-1");
}

// A file is 256 TiB at most, and there are more files in a long life than places for them.
TEST_F(PatternDetectorTest, EndlessNewFilesAreTold) {
  for (uint64_t generation = 2; generation < 40'000; ++generation) {
    file_.generation = generation;
    patterns_->add_step(file_, {0, kMiB});
  }
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(observe({i * kMiB, kMiB}), i > 0);
  step(file_.file_id, 0);
  step(file_.file_id, 4);
  step(file_.file_id, 0);
  EXPECT_EQ(next(file_.file_id, 0), "4-5 0-1");
}

TEST_F(PatternDetectorTest, ReadsBeyondTheLargestFileGetNoAnswer) {
  constexpr uint64_t kEnd = uint64_t{1} << 48;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(observe({kEnd, kMiB}));
  EXPECT_EQ(patterns_->add_step(file_, {kEnd, kMiB}), 0u);
}

}  // namespace
}  // namespace graphlane
