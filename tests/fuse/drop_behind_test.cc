// What a sweep leaves behind, and what is no sweep.
#include "fuse/drop_behind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace graphlane {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kKept = 64 * kMiB;
constexpr uint64_t kRequest = kMiB / 2;

// What has gone, and whether anything went twice or out of order.
struct Gone {
  uint64_t bytes = 0;
  uint64_t end = 0;
  void add(const std::optional<ByteRange>& range) {
    if (!range) return;
    EXPECT_GE(range->offset, end);
    bytes += range->length_bytes;
    end = range->end();
  }
};

TEST(ReadTrailTest, ASweepKeepsWhatLiesShortlyBehindIt) {
  ReadTrail trail;
  Gone gone;
  for (uint64_t at = 0; at < 1000 * kMiB; at += kRequest) {
    gone.add(trail.advance({at, kRequest}, kKept));
    EXPECT_LE(gone.end + kKept, std::max(at + kRequest, kKept));
  }
  EXPECT_GE(gone.bytes, 1000 * kMiB - 2 * kKept);
  const auto rest = trail.rest();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->offset, gone.end);
  EXPECT_EQ(rest->end(), 1000 * kMiB);
}

TEST(ReadTrailTest, TheNextSweepBeginsAnew) {
  ReadTrail trail;
  for (int sweep = 0; sweep < 3; ++sweep) {
    Gone gone;
    for (uint64_t at = 0; at < 500 * kMiB; at += kRequest) {
      gone.add(trail.advance({at, kRequest}, kKept));
    }
    EXPECT_GE(gone.bytes, 500 * kMiB - 2 * kKept) << sweep;
  }
}

TEST(ReadTrailTest, LittleIsNoSweep) {
  ReadTrail trail;
  std::mt19937_64 random(3);
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(trail.advance({random() % 10'000 * kMiB, 4096}, kKept));
  }
  EXPECT_FALSE(trail.rest());
}

// Threads that are further apart than what is kept: once that has shown, it is kept.
TEST(ReadTrailTest, LearnsHowFarApartThreadsAre) {
  ReadTrail trail;
  constexpr uint64_t kApart = 100 * kMiB;
  Gone gone;
  uint64_t too_early = 0;
  for (uint64_t at = 0; at < 2000 * kMiB; at += kRequest) {
    if (at < gone.end) ++too_early;
    for (const uint64_t begin : {at, at + kApart}) {
      if (const auto range = trail.advance({begin, kRequest}, kKept)) {
        gone.bytes += range->length_bytes;
        gone.end = std::max(gone.end, range->end());
      }
    }
  }
  EXPECT_LE(too_early, 60 * kMiB / kRequest);
  EXPECT_GE(gone.bytes, 1500 * kMiB);
}

}  // namespace
}  // namespace graphlane
