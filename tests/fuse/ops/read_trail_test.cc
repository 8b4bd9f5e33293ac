// ReadTrail: which pages a sweep keeps, and which reads are no sweep.
#include "fuse/ops/read_trail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/sizes.h"

namespace graphlane::fuse {
namespace {

constexpr uint64_t kTrailKept = 64 * kMiB;
constexpr uint64_t kTrailStep = 4 * kMiB;
constexpr uint64_t kTrailRequest = kMiB / 2;
constexpr uint64_t kSwept = 7;
constexpr uint64_t kOtherSwept = 8;

// Reads one request after another, and records which ranges the trail drops.
class TrailReader {
 public:
  void read(uint64_t ino, uint64_t at, uint64_t bytes = kTrailRequest) {
    if (ends_.contains(ino) && at < ends_[ino]) ++too_early_;
    trail_.add(ino, {.offset = at, .length_bytes = bytes});
    while (const auto gone = trail_.take(kTrailKept)) note(*gone);
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
  TrailReader reader;
  for (uint64_t at = 0; at < 1000 * kMiB; at += kTrailRequest) {
    reader.read(kSwept, at);
    EXPECT_LE(reader.end(kSwept) + kTrailKept, std::max(at + kTrailRequest, kTrailKept));
  }
  EXPECT_GE(reader.gone_bytes(), 1000 * kMiB - kTrailKept - kTrailStep);
  reader.close(kSwept);
  EXPECT_EQ(reader.gone_bytes(), 1000 * kMiB);
}

TEST(ReadTrailTest, TheNextSweepStartsOver) {
  TrailReader reader;
  for (uint64_t sweep = 1; sweep <= 3; ++sweep) {
    for (uint64_t at = 0; at < 500 * kMiB; at += kTrailRequest) reader.read(kSwept, at);
    EXPECT_GE(reader.gone_bytes(), sweep * 500 * kMiB - kTrailKept - kTrailStep) << sweep;
    reader.begin_anew();
  }
}

TEST(ReadTrailTest, DropsPagesOfThreadsThatShareAFile) {
  TrailReader reader;
  constexpr uint64_t kBlock = 24 * kMiB;
  for (uint64_t blocks = 0; blocks < 960 * kMiB; blocks += 2 * kBlock) {
    for (uint64_t at = blocks; at < blocks + kBlock; at += 2 * kTrailRequest) {
      // Workers take blocks out of order.
      for (const uint64_t begin : {at + kTrailRequest, at}) {
        reader.read(kSwept, begin);
        reader.read(kSwept, begin + kBlock);
      }
    }
  }
  EXPECT_GE(reader.gone_bytes(), 960 * kMiB - kTrailKept - 3 * kTrailStep);
  EXPECT_LE(reader.gone_bytes(), 960 * kMiB - kTrailKept + 3 * kTrailStep);
}

TEST(ReadTrailTest, DropsFilesInTheOrderOfReading) {
  TrailReader reader;
  for (uint64_t at = 0; at < 100 * kMiB; at += kTrailRequest) reader.read(kSwept, at);
  for (uint64_t at = 0; at < kTrailKept; at += kTrailRequest) reader.read(kOtherSwept, at);
  EXPECT_EQ(reader.end(kSwept), 100 * kMiB);
  EXPECT_EQ(reader.end(kOtherSwept), 0U);
  reader.close(kOtherSwept);
  EXPECT_EQ(reader.end(kOtherSwept), kTrailKept);
}

// Pages that are read after the writer has closed are dropped again.
TEST(ReadTrailTest, KeepsPagesOfAFileWithAWriter) {
  ReadTrail trail;
  for (uint64_t at = 0; at < 100 * kMiB; at += kTrailRequest) {
    trail.add(kSwept, {.offset = at, .length_bytes = kTrailRequest});
    trail.add(kOtherSwept, {.offset = at, .length_bytes = kTrailRequest});
  }
  trail.forget(kSwept);
  uint64_t gone_bytes = 0;
  while (const auto stretch = trail.take(kTrailStep)) {
    EXPECT_EQ(stretch->file, kOtherSwept);
    gone_bytes += stretch->range.length_bytes;
  }
  EXPECT_GE(gone_bytes, 100 * kMiB - 2 * kTrailStep) << "and only so much stays of the others";
}

TEST(ReadTrailTest, ScatteredSmallReadsAreNoSweep) {
  TrailReader reader;
  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) reader.read(kSwept, random() % 1'000'000 * 16 * kMiB, 4096);
  reader.close(kSwept);
  EXPECT_EQ(reader.gone_bytes(), 0U);
}

// A slow thread must find the pages that the kernel prefetched for it. The trail grows once a read
// has come late.
TEST(ReadTrailTest, LearnsHowMuchToKeep) {
  TrailReader reader;
  constexpr uint64_t kBehind = 40 * kMiB;
  for (uint64_t at = 0; at < 2000 * kMiB; at += kTrailRequest) {
    reader.read(kSwept, at + kBehind);
    reader.read(kSwept, at);
  }
  EXPECT_LE(reader.too_early(), static_cast<int>(100 * kMiB / kTrailRequest));
  EXPECT_GE(reader.gone_bytes(), 1500 * kMiB);
}

}  // namespace
}  // namespace graphlane::fuse
