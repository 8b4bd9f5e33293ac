// ReadStream: which reads are a stream, and how far it is prefetched.
#include "iomgr/read/pattern/read_stream.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kStreamMost = 24 * kMiB;

ByteRange stream_mib(uint64_t begin, uint64_t end) {
  return {.offset = begin * kMiB, .length_bytes = (end - begin) * kMiB};
}

ReadStream stream_of(std::initializer_list<uint64_t> reads) {
  ReadStream stream;
  stream.restart(stream_mib(*reads.begin(), *reads.begin() + 1));
  for (const uint64_t at : reads) stream.extend(stream_mib(at, at + 1));
  return stream;
}

TEST(ReadStreamTest, SoManyForwardReadsAreAStream) {
  EXPECT_FALSE(stream_of({0, 1}).is_dense(3));
  EXPECT_TRUE(stream_of({0, 1}).is_dense(2));
  EXPECT_TRUE(stream_of({0, 1, 2}).is_dense(3));
}

TEST(ReadStreamTest, RepeatedReadsAreNone) {
  EXPECT_FALSE(stream_of({5, 5, 5, 5, 5}).is_dense(2));
  EXPECT_FALSE(stream_of({5, 6, 5, 6, 5, 6}).is_dense(3));
}

TEST(ReadStreamTest, ReadsThatGoBackAreNone) {
  EXPECT_FALSE(stream_of({9, 8, 7, 6}).is_dense(2));
  ReadStream stream;
  for (const uint64_t at : {500, 300, 100}) stream.restart(stream_mib(at, at + 1));
  EXPECT_FALSE(stream.is_dense(2));
}

TEST(ReadStreamTest, NothingIsNearTheEndOfAnEmptyStream) {
  EXPECT_FALSE(ReadStream().is_near_end(stream_mib(1, 2), 4 * kMiB));
}

TEST(ReadStreamTest, HalfOfItMustBeAskedFor) {
  EXPECT_TRUE(stream_of({0, 2, 4}).is_dense(3));
  EXPECT_FALSE(stream_of({0, 4, 8}).is_dense(3));
}

TEST(ReadStreamTest, ReadsOutOfOrderAreNear) {
  const ReadStream stream = stream_of({10, 11, 12});
  EXPECT_TRUE(stream.is_near_end(stream_mib(15, 16), 2 * kMiB));
  EXPECT_FALSE(stream.is_near_end(stream_mib(16, 17), 2 * kMiB));
  EXPECT_FALSE(stream.is_near_end(stream_mib(7, 8), 2 * kMiB));
  EXPECT_TRUE(stream.is_near_end(stream_mib(10, 11), 2 * kMiB));
}

TEST(ReadStreamTest, TheNextSweepIsAStreamAndAJumpForwardIsNot) {
  ReadStream stream = stream_of({100, 101, 102});
  stream.restart(stream_mib(0, 1));
  EXPECT_TRUE(stream.is_dense(3));
  stream.restart(stream_mib(500, 501));
  EXPECT_FALSE(stream.is_dense(3));
}

TEST(ReadStreamTest, OldBytesFade) {
  ReadStream stream = stream_of({0, 1, 2});
  for (uint64_t at = 3; at < 3000; at += 1) stream.extend(stream_mib(at, at + 1));
  EXPECT_TRUE(stream.is_dense(3));
  for (uint64_t at = 3000; at < 5000; at += 8) stream.extend(stream_mib(at, at + 1));
  EXPECT_FALSE(stream.is_dense(3)) << "more than half of all, but little of the last GiB";
}

TEST(ReadStreamTest, PrefetchesTwiceWhatWasReadUpToTheMost) {
  ReadStream stream = stream_of({0});
  EXPECT_EQ(stream.take_ahead(kStreamMost), stream_mib(1, 3));
  EXPECT_EQ(stream.take_ahead(kStreamMost).length_bytes, 0u) << "enough is under way";
  stream.extend(stream_mib(1, 2));
  EXPECT_EQ(stream.take_ahead(kStreamMost), stream_mib(3, 6));
  for (uint64_t at = 2; at < 100; ++at) stream.extend(stream_mib(at, at + 1));
  EXPECT_EQ(stream.take_ahead(kStreamMost), stream_mib(100, 124));
}

}  // namespace
}  // namespace graphlane
