// MappedCache: what the kernel takes of a cache that yields is noticed, whatever it takes.
#include "iomgr/mapped_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <optional>

namespace graphlane {
namespace {

constexpr uint64_t kPage = kBlockSize;
constexpr uint64_t kFrame = 64 * kPage;
constexpr uint64_t kFrameCount = 32;
FrameKey key(uint64_t frame_index) {
  return {.file_id = {}, .generation = 1, .frame_index = frame_index};
}
const FrameKey kKey = key(3);

class MappedCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { map(true); }
  void map(bool yields) {
    cache_.emplace();
    ASSERT_TRUE(cache_->map(kFrameCount * kFrame, {.frame_bytes = kFrame}, yields));
  }
  // Fills the frame with the byte, but for the beginning of each page, which is zero.
  void fill(const FrameKey& key, int byte, uint64_t valid_bytes = kFrame) {
    Reservation reservation = (*cache_)->reserve(key);
    ASSERT_EQ(reservation.kind, Reservation::Kind::kFill);
    cache_->claim(reservation.fill);
    std::byte* const bytes = reservation.fill.bytes().data();
    std::memset(bytes, byte, valid_bytes);
    for (uint64_t at = 0; at < valid_bytes; at += kPage) std::memset(bytes + at, 0, 100);
    cache_->leave(reservation.fill, valid_bytes);
    (void)reservation.fill.publish(valid_bytes);
  }
  // As the kernel does, of one page.
  static void take(const Pin& pin, uint64_t page) {
    auto* const begin = const_cast<std::byte*>(pin.bytes().data());
    ASSERT_EQ(::madvise(begin + page * kPage, kPage, MADV_DONTNEED), 0);
  }
  bool is_there(const FrameKey& key) { return static_cast<bool>((*cache_)->find(key)); }

  std::optional<MappedCache> cache_;
};

TEST_F(MappedCacheTest, WhatWasNotTakenIsThere) {
  fill(kKey, 7);
  const Pin pin = (*cache_)->find(kKey);
  EXPECT_FALSE(cache_->lost(pin, 0, kFrame));
  EXPECT_FALSE(cache_->lost(pin, 5, 1));
  EXPECT_FALSE(cache_->lost(pin, 0, 0));
  EXPECT_EQ(pin.bytes()[kPage + 100], std::byte{7});
}

TEST_F(MappedCacheTest, WhoCopiesATakenPageIsToldAndOthersAreNot) {
  fill(kKey, 7);
  {
    const Pin pin = (*cache_)->find(kKey);
    take(pin, 5);
    EXPECT_FALSE(cache_->lost(pin, 0, 5 * kPage));
    EXPECT_FALSE(cache_->lost(pin, 6 * kPage, kFrame - 6 * kPage));
    EXPECT_TRUE(is_there(kKey));
    EXPECT_TRUE(cache_->lost(pin, 5 * kPage + 10, 1)) << "also of the page's zeros";
    EXPECT_FALSE(is_there(kKey));
  }
  fill(kKey, 8);
  EXPECT_FALSE(cache_->lost((*cache_)->find(kKey), 0, kFrame));
}

TEST_F(MappedCacheTest, APageOfZerosCanLoseNothing) {
  fill(kKey, 0);
  const Pin pin = (*cache_)->find(kKey);
  take(pin, 5);
  EXPECT_FALSE(cache_->lost(pin, 0, kFrame));
}

TEST_F(MappedCacheTest, TheEndOfAFileIsNoPage) {
  fill(kKey, 9);  // what lies behind the end is of another file
  (*cache_)->drop(kKey.file_id);
  fill(kKey, 7, 2 * kPage + 200);
  const Pin pin = (*cache_)->find(kKey);
  ASSERT_EQ(pin.bytes().size(), 2 * kPage + 200);
  EXPECT_FALSE(cache_->lost(pin, 0, pin.bytes().size()));
  take(pin, 2);
  EXPECT_TRUE(cache_->lost(pin, 2 * kPage, 200));
}

TEST_F(MappedCacheTest, OneThatDoesNotYieldLooksForNothing) {
  map(false);
  fill(kKey, 7);
  const Pin pin = (*cache_)->find(kKey);
  take(pin, 5);
  EXPECT_FALSE(cache_->lost(pin, 0, kFrame));
}

// The kernel itself. Where there is swap, it may write the claimed frame there, and bring it back.
TEST_F(MappedCacheTest, TheKernelTakesWhatIsLeftAndNotWhatIsClaimed) {
  for (uint64_t i = 0; i < 8; ++i) fill(key(i), 7);
  Reservation claimed = (*cache_)->reserve(key(8));
  ASSERT_EQ(claimed.kind, Reservation::Kind::kFill);
  cache_->claim(claimed.fill);
  std::memset(claimed.fill.bytes().data(), 6, kFrame);
  (void)::madvise(claimed.fill.bytes().data(), kFrame, MADV_PAGEOUT);
  EXPECT_EQ(claimed.fill.bytes()[5 * kPage], std::byte{6});
  cache_->leave(claimed.fill, kFrame);
  (void)claimed.fill.publish(kFrame);

  uint64_t lost = 0;
  for (uint64_t i = 0; i < 9; ++i) {
    const Pin pin = (*cache_)->find(key(i));
    ASSERT_TRUE(pin);
    (void)::madvise(const_cast<std::byte*>(pin.bytes().data()), kFrame, MADV_PAGEOUT);
    const std::byte there = pin.bytes()[5 * kPage + 100];
    if (cache_->lost(pin, 5 * kPage, kPage)) {
      ++lost;
    } else {
      EXPECT_EQ(there, std::byte(i < 8 ? 7 : 6));
    }
  }
  if (lost == 0) GTEST_SKIP() << "this kernel takes nothing when it is asked to";
}

}  // namespace
}  // namespace graphlane
