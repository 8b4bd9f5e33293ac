// MappedCache notices every page that the kernel reclaims from a reclaimable cache.
#include "iomgr/cache/mapped_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

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
  void map(bool reclaimable) {
    cache_.emplace();
    ASSERT_TRUE(cache_->map(kFrameCount * kFrame,
                            {.frames = {.frame_bytes = kFrame}, .reclaimable = reclaimable}));
  }
  // Fills the frame with the byte, except for the first bytes of each page, which are zero.
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
  // Reclaims one page, as the kernel does.
  static void take(const Pin& pin, uint64_t page) {
    auto* const begin = const_cast<std::byte*>(pin.bytes().data());
    ASSERT_EQ(::madvise(begin + page * kPage, kPage, MADV_DONTNEED), 0);
  }
  bool lost(const Pin& pin, uint64_t begin, uint64_t length) {
    std::vector<std::byte> copied(length);
    return !cache_->copy(pin, begin, copied);
  }
  bool is_there(const FrameKey& key) { return static_cast<bool>((*cache_)->find(key)); }

  std::optional<MappedCache> cache_;
};

TEST_F(MappedCacheTest, IntactPagesAreServed) {
  fill(kKey, 7);
  const Pin pin = (*cache_)->find(kKey);
  EXPECT_FALSE(lost(pin, 0, kFrame));
  EXPECT_FALSE(lost(pin, 5, 1));
  EXPECT_FALSE(lost(pin, 0, 0));
  EXPECT_EQ(pin.bytes()[kPage + 100], std::byte{7});
}

TEST_F(MappedCacheTest, OnlyCopiesOfReclaimedPagesFail) {
  fill(kKey, 7);
  {
    const Pin pin = (*cache_)->find(kKey);
    take(pin, 5);
    EXPECT_FALSE(lost(pin, 0, 5 * kPage));
    EXPECT_FALSE(lost(pin, 6 * kPage, kFrame - 6 * kPage));
    EXPECT_TRUE(is_there(kKey));
    EXPECT_TRUE(lost(pin, 5 * kPage + 10, 1)) << "also of the page's zeros";
    EXPECT_FALSE(is_there(kKey));
  }
  fill(kKey, 8);
  EXPECT_FALSE(lost((*cache_)->find(kKey), 0, kFrame));
}

TEST_F(MappedCacheTest, AReclaimedPageOfZerosIsStillRight) {
  fill(kKey, 0);
  const Pin pin = (*cache_)->find(kKey);
  take(pin, 5);
  EXPECT_FALSE(lost(pin, 0, kFrame));
}

TEST_F(MappedCacheTest, AnIncompleteLastPageIsChecked) {
  fill(kKey, 9);  // bytes behind the end belong to another file
  (*cache_)->drop(kKey.file_id);
  fill(kKey, 7, 2 * kPage + 200);
  const Pin pin = (*cache_)->find(kKey);
  ASSERT_EQ(pin.bytes().size(), 2 * kPage + 200);
  EXPECT_FALSE(lost(pin, 0, pin.bytes().size()));
  take(pin, 2);
  EXPECT_TRUE(lost(pin, 2 * kPage, 200));
}

TEST_F(MappedCacheTest, ANonReclaimableCacheChecksNoPages) {
  map(false);
  fill(kKey, 7);
  const Pin pin = (*cache_)->find(kKey);
  take(pin, 5);
  EXPECT_FALSE(lost(pin, 0, kFrame));
}

// The kernel reclaims the pages itself. With swap it may write the claimed frame there, and bring
// it back.
TEST_F(MappedCacheTest, TheKernelReclaimsFilledFramesButNotClaimedOnes) {
  for (uint64_t i = 0; i < 8; ++i) fill(key(i), 7);
  Reservation claimed = (*cache_)->reserve(key(8));
  ASSERT_EQ(claimed.kind, Reservation::Kind::kFill);
  cache_->claim(claimed.fill);
  std::memset(claimed.fill.bytes().data(), 6, kFrame);
  (void)::madvise(claimed.fill.bytes().data(), kFrame, MADV_PAGEOUT);
  EXPECT_EQ(claimed.fill.bytes()[5 * kPage], std::byte{6});
  cache_->leave(claimed.fill, kFrame);
  (void)claimed.fill.publish(kFrame);

  uint64_t taken = 0;
  for (uint64_t i = 0; i < 9; ++i) {
    const Pin pin = (*cache_)->find(key(i));
    ASSERT_TRUE(pin);
    (void)::madvise(const_cast<std::byte*>(pin.bytes().data()), kFrame, MADV_PAGEOUT);
    const std::byte there = pin.bytes()[5 * kPage + 100];
    if (lost(pin, 5 * kPage, kPage)) {
      ++taken;
    } else {
      EXPECT_EQ(there, std::byte(i < 8 ? 7 : 6));
    }
  }
  if (taken == 0) GTEST_SKIP() << "this kernel takes nothing when it is asked to";
}

// ---- packing

class PackingTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr uint64_t kWhole = kPackedBytesMax;
  static constexpr uint64_t kBudget = 16 * kWhole;
  using Bytes = std::vector<std::byte>;

  void SetUp() override {
    ASSERT_TRUE(cache_.map(kBudget, {.frames = {.frame_bytes = kWhole},
                                     .reclaimable = true,
                                     .packed_frame_bytes = kWhole / 2}));
    ASSERT_TRUE(cache_.resize(kBudget));
  }
  // Words with so many significant bits.
  static Bytes words(uint64_t seed, uint32_t bits, uint64_t length = kWhole) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    Bytes bytes(length);
    for (uint64_t at = 0; at + 4 <= length; at += 4) {
      const uint32_t word = 1000 + (static_cast<uint32_t>(random()) >> (32 - bits));
      std::memcpy(&bytes[at], &word, sizeof word);
    }
    return bytes;
  }
  // Fills the frame from a device or from memory. Returns false if there is no room.
  bool fill(uint64_t index, const Bytes& bytes) {
    Reservation reservation = cache_->reserve(key(index), Admission::kByPolicy);
    if (reservation.kind != Reservation::Kind::kFill) return false;
    if (GetParam()) {
      cache_.claim(reservation.fill);
      std::memcpy(reservation.fill.bytes().data(), bytes.data(), bytes.size());
      cache_.leave(reservation.fill, bytes.size());
    } else {
      void* aligned = nullptr;
      EXPECT_EQ(::posix_memalign(&aligned, kPage, kWhole), 0);
      std::memcpy(aligned, bytes.data(), bytes.size());
      cache_.fill(reservation.fill, {static_cast<std::byte*>(aligned), bytes.size()});
      ::free(aligned);
    }
    (void)reservation.fill.publish(bytes.size());
    return true;
  }
  static uint64_t pages_there(const Pin& pin) {
    auto* const frame = const_cast<std::byte*>(pin.bytes().data());
    std::vector<unsigned char> there(kWhole / kPage);
    EXPECT_EQ(::mincore(frame, kWhole, there.data()), 0);
    return std::count_if(there.begin(), there.end(), [](unsigned char c) { return (c & 1) != 0; });
  }

  MappedCache cache_;
};

TEST_P(PackingTest, PackedFramesReadBackInWholeAndInPieces) {
  const Bytes bytes = words(1, 19);
  ASSERT_TRUE(fill(3, bytes));
  const Pin pin = cache_->find(key(3));
  ASSERT_TRUE(pin);
  std::mt19937 random(2);
  Bytes copied(kWhole);
  ASSERT_TRUE(cache_.copy(pin, 0, copied));
  EXPECT_TRUE(copied == bytes);
  for (int i = 0; i < 200; ++i) {
    const uint64_t begin = random() % kWhole, length = 1 + random() % (kWhole - begin);
    ASSERT_TRUE(cache_.copy(pin, begin, std::span(copied).first(length)));
    ASSERT_TRUE(std::equal(copied.begin(), copied.begin() + length, bytes.begin() + begin));
  }
}

TEST_P(PackingTest, ResidentBytesAreThePackedSizes) {
  ASSERT_TRUE(fill(3, words(1, 16)));
  EXPECT_LE(pages_there(cache_->find(key(3))), kWhole / 2 / kPage);
  ASSERT_TRUE(fill(4, words(1, 32)));
  EXPECT_EQ(pages_there(cache_->find(key(4))), kWhole / kPage);
}

TEST_P(PackingTest, ARefilledFrameKeepsNoOldBytes) {
  for (uint64_t i = 0; i < 16; ++i) (void)fill(i, words(i, 32));
  cache_->drop(key(0).file_id);
  for (uint64_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(fill(i, words(i, 8)));
    EXPECT_LE(pages_there(cache_->find(key(i))), kWhole / 4 / kPage);
  }
}

TEST_P(PackingTest, PackedFramesFillTheBudget) {
  for (uint64_t i = 0; i < 100; ++i) (void)fill(i, words(i, 16));
  EXPECT_LE(cache_.resident_bytes(), kBudget);
  uint64_t pages = 0, found = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const Pin pin = cache_->find(key(i));
    if (!pin) continue;
    ++found;
    pages += pages_there(pin);
  }
  EXPECT_GE(found, kBudget / (kWhole / 2) * 9 / 10);
  EXPECT_LE(pages * kPage, kBudget);
}

TEST_P(PackingTest, UnpackableFramesStayWithinTheBudget) {
  for (uint64_t i = 0; i < 40; ++i) (void)fill(i, words(i, 16));
  cache_->drop(key(0).file_id);
  for (uint64_t i = 0; i < 200; ++i) (void)fill(i, words(i, 32));
  EXPECT_LE(cache_.resident_bytes(), kBudget + kBudget / 8);
  uint64_t pages = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    if (const Pin pin = cache_->find(key(i))) pages += pages_there(pin);
  }
  EXPECT_LE(pages * kPage, kBudget + kBudget / 8);
}

TEST_P(PackingTest, ASmallerBudgetEvictsFrames) {
  for (uint64_t i = 0; i < 30; ++i) (void)fill(i, words(i, 16));
  ASSERT_TRUE(cache_.resize(kBudget / 4));
  EXPECT_LE(cache_.resident_bytes(), kBudget / 4);
  ASSERT_TRUE(cache_.resize(0));
  EXPECT_EQ(cache_.resident_bytes(), 0u);
}

TEST_P(PackingTest, CopyingAReclaimedFrameFails) {
  const Bytes bytes = words(1, 16);
  ASSERT_TRUE(fill(3, bytes));
  const Pin pin = cache_->find(key(3));
  auto* const frame = const_cast<std::byte*>(pin.bytes().data());
  ASSERT_EQ(::madvise(frame + 10 * kPage, kPage, MADV_DONTNEED), 0);
  Bytes copied(kWhole);
  // Two pages were packed into one.
  ASSERT_TRUE(cache_.copy(pin, 0, std::span(copied).first(19 * kPage)));
  EXPECT_TRUE(std::equal(copied.begin(), copied.begin() + 19 * kPage, bytes.begin()));
  EXPECT_TRUE(cache_.copy(pin, 23 * kPage, std::span(copied).first(kPage)));
  EXPECT_FALSE(cache_.copy(pin, 21 * kPage, std::span(copied).first(1)));
  EXPECT_FALSE(cache_->find(key(3)));
}

TEST_P(PackingTest, TheEndOfAFileIsStoredUnpacked) {
  const Bytes bytes = words(5, 16, kWhole - 3 * kPage);
  ASSERT_TRUE(fill(3, bytes));
  const Pin pin = cache_->find(key(3));
  ASSERT_EQ(pin.bytes().size(), bytes.size());
  Bytes copied(1000);
  ASSERT_TRUE(cache_.copy(pin, bytes.size() - 1000, copied));
  EXPECT_TRUE(std::equal(copied.begin(), copied.end(), bytes.end() - 1000));
}

INSTANTIATE_TEST_SUITE_P(Read, PackingTest, ::testing::Bool());

TEST(PackingOptionsTest, OnlyFramesOfOneSizeArePacked) {
  MappedCache cache;
  EXPECT_EQ(cache.map(1 << 20, {.frames = {.frame_bytes = kPage}, .packed_frame_bytes = 1024})
                .error()
                .code,
            EINVAL);
}

}  // namespace
}  // namespace graphlane
