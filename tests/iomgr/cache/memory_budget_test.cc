// The shares of memory, as a table, and a cache's budget while free memory comes and goes.
#include "iomgr/cache/memory_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <ostream>

#include "iomgr/cache/page_cache_share.h"
#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kGiB = 1024 * kMiB;

// ---- shares

struct ShareCase {
  const char* name;
  MemoryUse use;
  uint64_t of_4_gib;    // MiB
  uint64_t of_256_mib;  // MiB
  uint64_t of_10_mib;   // KiB
};
std::ostream& operator<<(std::ostream& out, const ShareCase& one) { return out << one.name; }

class MemoryShareTest : public ::testing::TestWithParam<ShareCase> {};

TEST_P(MemoryShareTest, OfMuchOfLittleAndOfHardlyAny) {
  const ShareCase& expected = GetParam();
  EXPECT_EQ(budget_of(expected.use, 4 * kGiB) / kMiB, expected.of_4_gib);
  EXPECT_EQ(budget_of(expected.use, 256 * kMiB) / kMiB, expected.of_256_mib);
  EXPECT_EQ(budget_of(expected.use, 10 * kMiB) / 1024, expected.of_10_mib);
}

INSTANTIATE_TEST_SUITE_P(
    Uses, MemoryShareTest,
    ::testing::Values(ShareCase{"Frames", MemoryUse::kFrames, 1984, 64, 0},
                      ShareCase{"ReclaimableFrames", MemoryUse::kReclaimableFrames, 3584, 224, 0},
                      ShareCase{"FirstFrames", MemoryUse::kFirstFrames, 2048, 128, 5120},
                      ShareCase{"GivenFrames", MemoryUse::kGivenFrames, 4064, 224, 0},
                      ShareCase{"SharedPages", MemoryUse::kSharedPages, 2560, 160, 6400},
                      ShareCase{"PrefetchedPages", MemoryUse::kPrefetchedPages, 1024, 64, 2560},
                      ShareCase{"KeptPages", MemoryUse::kKeptPages, 1024, 64, 2560},
                      ShareCase{"PagesBehind", MemoryUse::kPagesBehind, 1024, 64, 16384},
                      ShareCase{"KernelReadAhead", MemoryUse::kKernelReadAhead, 128, 8, 320},
                      ShareCase{"DirtyPages", MemoryUse::kDirtyPages, 1024, 64, 2560},
                      ShareCase{"Buffers", MemoryUse::kBuffers, 2048, 128, 5120},
                      ShareCase{"PackedBuffers", MemoryUse::kPackedBuffers, 3968, 248, 4096}),
    [](const auto& one) { return one.param.name; });

struct PrefetchCase {
  uint64_t budget, min, expected;  // MiB
};

TEST(PrefetchBudgetTest, IsATwelfthWithinBounds) {
  for (const auto& [budget, min, expected] :
       {PrefetchCase{0, 10, 0}, PrefetchCase{32, 10, 8}, PrefetchCase{64, 10, 10},
        PrefetchCase{384, 10, 32}, PrefetchCase{384, 40, 40}, PrefetchCase{4096, 10, 64},
        PrefetchCase{4096, 100, 64}}) {
    EXPECT_EQ(prefetch_budget_of(budget * kMiB, min * kMiB), expected * kMiB)
        << budget << ", " << min;
  }
}

TEST(ScanBudgetTest, IsHalfAndAtMostWhatKeepsAllDevicesBusy) {
  EXPECT_EQ(scan_budget_of(16 * kMiB), 8 * kMiB);
  EXPECT_EQ(scan_budget_of(kGiB), 24 * kMiB);
}

struct FitCase {
  IoMode mode;
  uint64_t all;  // MiB, of 800 available
  MemoryFit expected;
};

TEST(FitInMemoryTest, LeavesAnEighthToOthers) {
  for (const auto& [mode, all, expected] :
       {FitCase{IoMode::kAuto, 350, MemoryFit::kTwice},
        FitCase{IoMode::kAuto, 351, MemoryFit::kOnce},
        FitCase{IoMode::kAuto, 700, MemoryFit::kOnce}, FitCase{IoMode::kAuto, 701, MemoryFit::kNot},
        FitCase{IoMode::kDirect, 1, MemoryFit::kNot},
        FitCase{IoMode::kBuffered, 9000, MemoryFit::kTwice}}) {
    EXPECT_EQ(fit_in_memory(mode, all * kMiB, 800 * kMiB), expected) << all;
  }
}

// ---- a cache of frames

constexpr uint64_t kSetBytes = 16 * kMiB;

class MemoryBudgetTest : public ::testing::Test {
 protected:
  void start(const MemoryBudget::Options& options, uint64_t available_mib) {
    budget_ = std::make_unique<MemoryBudget>(kSetBytes);
    ASSERT_TRUE(budget_->start(options, available_mib * kMiB));
  }
  bool adjust(uint64_t available_mib, uint64_t kept_mib = 0, uint64_t prefetched_mib = 0) {
    return budget_->adjust(available_mib * kMiB, {.kept_bytes = kept_mib * kMiB,
                                                  .prefetched_bytes = prefetched_mib * kMiB});
  }
  uint64_t budget() const { return budget_->bytes() / kMiB; }
  uint64_t kept() const { return budget_->limits().kept_bytes / kMiB; }
  uint64_t prefetched() const { return budget_->limits().prefetched_bytes / kMiB; }
  // Reads so much that a larger room counts as lasting.
  void read_for_long() {
    while (!budget_->count_read(64 * kMiB)) continue;
    for (uint64_t i = 0; i < 4 * 8; ++i) budget_->count_read(budget_->bytes() / 8 + 8 * kMiB);
  }

  std::unique_ptr<MemoryBudget> budget_;
};

TEST_F(MemoryBudgetTest, WithoutRoomForASetOfFramesThereIsNone) {
  MemoryBudget budget(kSetBytes);
  EXPECT_EQ(budget.start({.given_bytes = kSetBytes - 1}, 0).error().code, ENOMEM);
  EXPECT_EQ(budget.start({}, 150 * kMiB).error().code, ENOMEM) << "of 150, 128 are left alone";
}

TEST_F(MemoryBudgetTest, AGivenBudgetIsWholeSetsAndHoldsPrefetchesToo) {
  start({.given_bytes = 100 * kMiB, .prefetch_bytes_min = 10 * kMiB}, 0);
  EXPECT_EQ(budget(), 96);
  EXPECT_EQ(kept(), 96) << "all of it, while nothing is prefetched";
  EXPECT_TRUE(budget_->begin_prefetch());
  EXPECT_FALSE(budget_->begin_prefetch());
  EXPECT_EQ(prefetched(), 10);
  EXPECT_EQ(kept(), 86);
}

TEST_F(MemoryBudgetTest, AGivenBudgetShrinksUntil32MiBStayFree) {
  start({.given_bytes = 64 * kMiB}, 0);
  EXPECT_FALSE(adjust(40, 60));
  EXPECT_TRUE(adjust(0, 50));
  EXPECT_EQ(budget(), 18);
  EXPECT_TRUE(adjust(200));
  EXPECT_EQ(budget(), 64);
  EXPECT_FALSE(budget_->adjust(UINT64_MAX, {})) << "unknown";
  budget_->set_given(32 * kMiB);
  EXPECT_TRUE(adjust(200));
  EXPECT_EQ(budget(), 32);
}

TEST_F(MemoryBudgetTest, AReclaimableGivenBudgetDoesNotAskForFreeMemory) {
  start({.given_bytes = 64 * kMiB, .reclaimable = true}, 0);
  EXPECT_FALSE(budget_->depends_on_memory());
  EXPECT_FALSE(budget_->count_read(kGiB));
  EXPECT_FALSE(adjust(0));
  EXPECT_EQ(budget(), 64);
}

TEST_F(MemoryBudgetTest, AFollowingBudgetShrinksAtOnceAndGrowsWhenTheRoomHasLasted) {
  start({.reclaimable = true}, 1024);
  EXPECT_EQ(budget(), 512) << "half at first";
  EXPECT_EQ(budget_->most().kept_bytes / kMiB, 896);
  EXPECT_FALSE(adjust(1024));
  read_for_long();
  EXPECT_TRUE(adjust(1024));
  EXPECT_EQ(budget(), 896);
  EXPECT_TRUE(adjust(0, 100, 28));
  EXPECT_EQ(budget(), 112 - 28) << "prefetched frames come out of the free memory";
  EXPECT_EQ(kept(), 84) << "and not out of the budget";
}

TEST_F(MemoryBudgetTest, IsLookedAtAfterAnEighthOfItWasRead) {
  start({}, 1152);
  EXPECT_EQ(budget(), 512);
  EXPECT_FALSE(budget_->count_read(63 * kMiB));
  EXPECT_TRUE(budget_->count_read(kMiB));
  EXPECT_FALSE(budget_->count_read(kMiB));
}

TEST_F(MemoryBudgetTest, ReclaimedFramesHalveIt) {
  start({.reclaimable = true}, 1024);
  budget_->count_reclaim();
  EXPECT_TRUE(adjust(1024));
  EXPECT_EQ(budget(), 256);
  EXPECT_FALSE(adjust(1024)) << "once";
}

TEST_F(MemoryBudgetTest, BesideThePageCacheItIsANonReclaimableOne) {
  start({.reclaimable = true}, 512);
  EXPECT_EQ(budget(), 256);
  EXPECT_TRUE(budget_->set_beside_page_cache(true, 512 * kMiB, {}));
  EXPECT_EQ(budget(), 192);
  EXPECT_FALSE(budget_->set_beside_page_cache(true, 512 * kMiB, {}));
  EXPECT_TRUE(budget_->set_beside_page_cache(false, 512 * kMiB, {}));
  EXPECT_EQ(budget(), 256) << "at once, as at first";
}

TEST_F(MemoryBudgetTest, WhilePausedTheLimitsAreZero) {
  start({.given_bytes = 64 * kMiB}, 0);
  budget_->set_paused(true);
  EXPECT_EQ(kept() + prefetched(), 0);
  EXPECT_FALSE(adjust(0));
  budget_->set_paused(false);
  EXPECT_EQ(kept(), 64);
}

// ---- the page cache

TEST(PageCacheShareTest, ShrinksWhenItsPagesAreReclaimed) {
  PageCacheShare share(MemoryUse::kPrefetchedPages);
  EXPECT_EQ(share.bytes(), 0u) << "before the free memory was looked at";
  share.adjust(256 * kMiB);
  EXPECT_EQ(share.bytes(), 64 * kMiB);
  share.record_use(16 * kMiB, 4 * kMiB);
  EXPECT_EQ(share.bytes(), 48 * kMiB);
  share.record_use(16 * kMiB, 0);
  EXPECT_EQ(share.bytes(), 49 * kMiB);
  for (int times = 0; times < 100; ++times) share.record_use(kMiB, kMiB);
  EXPECT_EQ(share.bytes(), PageCacheShare::kMin);
  for (int times = 0; times < 100; ++times) share.record_use(16 * kMiB, 0);
  EXPECT_EQ(share.bytes(), 64 * kMiB) << "and no more than there is";
}

}  // namespace
}  // namespace graphlane
