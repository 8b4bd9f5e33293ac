// ReadTrail: which pages a sweep keeps, and which reads are no sweep.
#include "iomgr/read/pattern/read_trail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kKept = 64 * kMiB;
constexpr uint64_t kStep = 4 * kMiB;
constexpr uint64_t kRequest = kMiB / 2;
constexpr uint64_t kFile = 7;
constexpr uint64_t kOther = 8;

// Reads one request after another, and records which ranges the trail drops.
class Reader {
 public:
  void read(uint64_t ino, uint64_t at, uint64_t bytes = kRequest) {
    if (ends_.contains(ino) && at < ends_[ino]) ++too_early_;
    trail_.add(ino, {.offset = at, .length_bytes = bytes});
    while (const auto gone = trail_.take(kKept)) note(*gone);
  }
  void close(uint64_t ino) {
    while (const auto gone = trail_.take_of(ino)) note(*gone);
  }
  void begin_anew() { ends_.clear(); }

  uint64_t gone_bytes() const { return gone_bytes_; }
  uint64_t end(uint64_t ino) { return ends_[ino]; }
  int too_early() const { return too_early_; }

 private:
  void note(const ReadTrail::Stretch& gone) {
    gone_bytes_ += gone.range.length_bytes;
    ends_[gone.file] = std::max(ends_[gone.file], gone.range.end());
  }

  ReadTrail trail_;
  uint64_t gone_bytes_ = 0;
  std::map<uint64_t, uint64_t> ends_;
  int too_early_ = 0;
};

TEST(ReadTrailTest, ASweepKeepsItsLatestReads) {
  Reader reader;
  for (uint64_t at = 0; at < 1000 * kMiB; at += kRequest) {
    reader.read(kFile, at);
    EXPECT_LE(reader.end(kFile) + kKept, std::max(at + kRequest, kKept));
  }
  EXPECT_GE(reader.gone_bytes(), 1000 * kMiB - kKept - kStep);
  reader.close(kFile);
  EXPECT_EQ(reader.gone_bytes(), 1000 * kMiB);
}

TEST(ReadTrailTest, TheNextSweepStartsOver) {
  Reader reader;
  for (uint64_t sweep = 1; sweep <= 3; ++sweep) {
    for (uint64_t at = 0; at < 500 * kMiB; at += kRequest) reader.read(kFile, at);
    EXPECT_GE(reader.gone_bytes(), sweep * 500 * kMiB - kKept - kStep) << sweep;
    reader.begin_anew();
  }
}

TEST(ReadTrailTest, DropsPagesOfThreadsThatShareAFile) {
  Reader reader;
  constexpr uint64_t kBlock = 24 * kMiB;
  for (uint64_t blocks = 0; blocks < 960 * kMiB; blocks += 2 * kBlock) {
    for (uint64_t at = blocks; at < blocks + kBlock; at += 2 * kRequest) {
      // Workers take blocks out of order.
      for (const uint64_t begin : {at + kRequest, at}) {
        reader.read(kFile, begin);
        reader.read(kFile, begin + kBlock);
      }
    }
  }
  EXPECT_GE(reader.gone_bytes(), 960 * kMiB - kKept - 3 * kStep);
  EXPECT_LE(reader.gone_bytes(), 960 * kMiB - kKept + 3 * kStep);
}

TEST(ReadTrailTest, DropsFilesInTheOrderOfReading) {
  Reader reader;
  for (uint64_t at = 0; at < 100 * kMiB; at += kRequest) reader.read(kFile, at);
  for (uint64_t at = 0; at < kKept; at += kRequest) reader.read(kOther, at);
  EXPECT_EQ(reader.end(kFile), 100 * kMiB);
  EXPECT_EQ(reader.end(kOther), 0U);
  reader.close(kOther);
  EXPECT_EQ(reader.end(kOther), kKept);
}

// Pages that are read after the writer has closed are dropped again.
TEST(ReadTrailTest, KeepsPagesOfAFileWithAWriter) {
  ReadTrail trail;
  for (uint64_t at = 0; at < 100 * kMiB; at += kRequest) {
    trail.add(kFile, {.offset = at, .length_bytes = kRequest});
    trail.add(kOther, {.offset = at, .length_bytes = kRequest});
  }
  trail.forget(kFile);
  uint64_t gone_bytes = 0;
  while (const auto stretch = trail.take(kStep)) {
    EXPECT_EQ(stretch->file, kOther);
    gone_bytes += stretch->range.length_bytes;
  }
  EXPECT_GE(gone_bytes, 100 * kMiB - 2 * kStep) << "and only so much stays of the others";
}

TEST(ReadTrailTest, ScatteredSmallReadsAreNoSweep) {
  Reader reader;
  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) reader.read(kFile, random() % 1'000'000 * 16 * kMiB, 4096);
  reader.close(kFile);
  EXPECT_EQ(reader.gone_bytes(), 0U);
}

// A slow thread must find the pages that the kernel prefetched for it. The trail grows once a read
// has come late.
TEST(ReadTrailTest, LearnsHowMuchToKeep) {
  Reader reader;
  constexpr uint64_t kBehind = 40 * kMiB;
  for (uint64_t at = 0; at < 2000 * kMiB; at += kRequest) {
    reader.read(kFile, at + kBehind);
    reader.read(kFile, at);
  }
  EXPECT_LE(reader.too_early(), static_cast<int>(100 * kMiB / kRequest));
  EXPECT_GE(reader.gone_bytes(), 1500 * kMiB);
}

}  // namespace
}  // namespace graphlane
