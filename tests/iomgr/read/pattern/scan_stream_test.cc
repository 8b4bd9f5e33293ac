// ScanStream: which reads of a process are a sweep, and how far it is prefetched.
#include "iomgr/read/pattern/scan_stream.h"

#include <gtest/gtest.h>

#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kScanMost = 24 * kMiB;

ByteRange scan_mib(uint64_t begin, uint64_t end) {
  return {.offset = begin * kMiB, .length_bytes = (end - begin) * kMiB};
}

TEST(ScanStreamTest, ThreeForwardReadsAreASweep) {
  ScanStream stream;
  stream.add_thread();
  for (const uint64_t at : {0, 1}) stream.move_to(scan_mib(at, at + 1));
  EXPECT_FALSE(stream.sweeps());
  stream.move_to(scan_mib(2, 3));
  EXPECT_TRUE(stream.sweeps());
}

TEST(ScanStreamTest, RepeatedReadsOfOnePlaceAreNone) {
  ScanStream stream;
  stream.add_thread();
  for (int i = 0; i < 10; ++i) stream.move_to(scan_mib(5, 6));
  EXPECT_FALSE(stream.sweeps());
}

TEST(ScanStreamTest, AJumpForwardStartsOverAndTheNextSweepDoesNot) {
  ScanStream stream;
  stream.add_thread();
  for (const uint64_t at : {0, 1, 2}) stream.move_to(scan_mib(at, at + 1));
  stream.move_to(scan_mib(0, 1));
  EXPECT_TRUE(stream.sweeps());
  stream.move_to(scan_mib(500, 501));
  EXPECT_FALSE(stream.sweeps());
}

TEST(ScanStreamTest, ThreadsMayComeOutOfOrderByTwoBlocksEach) {
  ScanStream stream;
  for (int i = 0; i < 4; ++i) stream.add_thread();
  for (const uint64_t at : {0, 1, 2, 9, 8}) stream.move_to(scan_mib(at, at + 1));
  EXPECT_TRUE(stream.sweeps());
}

TEST(ScanStreamTest, PrefetchesAsFarAgainAsWasReadUpToTheMost) {
  ScanStream stream;
  stream.add_thread();
  stream.move_to(scan_mib(0, 1));
  EXPECT_EQ(stream.take_ahead(kScanMost), scan_mib(1, 3));
  EXPECT_EQ(stream.take_ahead(kScanMost).length_bytes, 0u) << "enough is under way";
  stream.move_to(scan_mib(1, 2));
  EXPECT_EQ(stream.take_ahead(kScanMost), scan_mib(3, 6));
  for (uint64_t at = 2; at < 100; ++at) stream.move_to(scan_mib(at, at + 1));
  EXPECT_EQ(stream.take_ahead(kScanMost), scan_mib(100, 124));
}

}  // namespace
}  // namespace graphlane
