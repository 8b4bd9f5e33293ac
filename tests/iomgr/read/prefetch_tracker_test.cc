// PrefetchTracker remembers the order of many files.
#include "iomgr/read/prefetch_tracker.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kFileBytes = 16 * kMiB;

class PrefetchTrackerTest : public ::testing::Test {
 protected:
  ExtentFile file(const Uuid& file_id) const {
    return {.file_id = file_id,
            .generation = 1,
            .size_bytes = kFileBytes,
            .map = map_,
            .parts = parts_};
  }
  // Reads, MiB by MiB.
  void read(const Uuid& file_id, uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; at += kMiB)
      prefetches_->begin_read(file(file_id), {at, kMiB});
  }
  // The predicted range after a read of the first MiB.
  ByteRange next(const Uuid& file_id) {
    PrefetchTracker::Forecast forecast;
    const bool expects = prefetches_->predict(file(file_id), {0, kMiB}, /*is_sequential=*/false,
                                              /*urgent=*/true, kMiB, kFileBytes, &forecast);
    return expects ? forecast.ranges[0] : ByteRange{};
  }

  const std::unique_ptr<PatternDetector> patterns_ =
      std::make_unique<PatternDetector>(PatternDetector::RunEnd::kInFile);
  const std::unique_ptr<PrefetchTracker> prefetches_ =
      std::make_unique<PrefetchTracker>(*patterns_);
  const StripeMap map_;
  const PartFiles parts_;
};

// GraphChi reads all its shards, one after another, and starts again.
TEST_F(PrefetchTrackerTest, RemembersTheOrderOfEachShard) {
  std::vector<Uuid> shards(24);
  for (Uuid& shard : shards) shard = Uuid::random();
  for (const Uuid& shard : shards) {
    read(shard, 0, 2 * kMiB);
    read(shard, 8 * kMiB, 12 * kMiB);  // the range between is skipped
  }
  for (const Uuid& shard : shards) {
    read(shard, 0, kMiB);
    EXPECT_EQ(next(shard).offset, kMiB);
    EXPECT_EQ(next(shard).length_bytes, kMiB);
  }
}

// A waiter for a frame is woken before the tracker hears of the frame.
TEST_F(PrefetchTrackerTest, AFramePassedBeforeItArrivesIsReleased) {
  const Uuid id = Uuid::random();
  read(id, 0, kMiB);
  prefetches_->add(file(id).key(1), 0);
  prefetches_->add(file(id).key(2), 0);
  prefetches_->end_read(file(id), {kMiB, kMiB});
  EXPECT_EQ(prefetches_->stats().used, 1u);
  prefetches_->complete(file(id).key(1), Pin{});
  prefetches_->complete(file(id).key(2), Pin{});
  EXPECT_EQ(prefetches_->stats().fetched, 2u);
  prefetches_->end_read(file(id), {kMiB, 2 * kMiB});
  EXPECT_EQ(prefetches_->stats().used, 2u) << "the second one only";
}

// Where most of a file is cached, a missing range is prefetched early.
TEST_F(PrefetchTrackerTest, AnEarlyPrefetchDoesNotExpireBeforeItIsDue) {
  const Uuid id = Uuid::random();
  read(id, 0, kMiB);
  prefetches_->add(file(id).key(14), 0);
  prefetches_->add(file(id).key(15), 200 * kMiB);
  for (int i = 0; i < 10; ++i) {
    read(id, 0, 14 * kMiB);
    prefetches_->end_read(file(id), {0, kMiB});
  }
  EXPECT_EQ(prefetches_->stats().unused, 1u);
  for (int i = 0; i < 10; ++i) read(id, 0, 14 * kMiB);
  prefetches_->end_read(file(id), {0, kMiB});
  EXPECT_EQ(prefetches_->stats().unused, 2u) << "unused";
}

}  // namespace
}  // namespace graphlane
