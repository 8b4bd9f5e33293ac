// PrefetchLedger: which prefetched ranges were read, skipped or never read, and when guesses pause.
#include "iomgr/read/prefetch_ledger.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/sizes.h"

namespace graphlane {
namespace {

ByteRange mib(uint64_t begin, uint64_t end) {
  return {.offset = begin * kMiB, .length_bytes = (end - begin) * kMiB};
}

class PrefetchLedgerTest : public ::testing::Test {
 protected:
  PrefetchLedger& ledger() { return *ledger_; }
  void use(uint64_t mibs) {
    ledger().add(mib(0, mibs), 0);
    EXPECT_EQ(ledger().take(mib(0, mibs)).bytes, mibs * kMiB);
  }
  void miss(uint64_t mibs) {
    ledger().add(mib(0, mibs), 0);
    EXPECT_EQ(ledger().expire_first().bytes, mibs * kMiB);
  }
  const std::unique_ptr<PrefetchLedger> ledger_ = std::make_unique<PrefetchLedger>();
};

TEST_F(PrefetchLedgerTest, AReadTakesItsBytesAndSkipsThoseInFront) {
  ledger().add(mib(4, 12), 0);
  ledger().add(mib(12, 14), 0);
  const PrefetchLedger::Taken taken = ledger().take(mib(6, 13));
  EXPECT_EQ(taken.items, 1u) << "the second is not read to its end";
  EXPECT_EQ(taken.bytes, 7 * kMiB);
  EXPECT_EQ(taken.skipped_bytes, 2 * kMiB);
  EXPECT_EQ(ledger().bytes(), kMiB);
  EXPECT_EQ(ledger().take(mib(13, 20)).items, 1u);
  EXPECT_TRUE(ledger().is_empty());
}

TEST_F(PrefetchLedgerTest, WhatIsKnownIsCutOff) {
  ledger().add(mib(8, 12), 0);
  ledger().add(mib(4, 8), 0);
  ByteRange range = mib(6, 8);
  EXPECT_TRUE(ledger().cut(&range));
  range = mib(10, 16);
  EXPECT_FALSE(ledger().cut(&range));
  EXPECT_EQ(range.offset, 12 * kMiB);
  EXPECT_EQ(range.length_bytes, 4 * kMiB);
  range = mib(2, 6);
  EXPECT_FALSE(ledger().cut(&range)) << "its begin is new";
  EXPECT_EQ(range.length_bytes, 4 * kMiB);
}

TEST_F(PrefetchLedgerTest, AnItemExpiresWhenItWasDueLongAgo) {
  ledger().add(mib(0, 1), 0);
  ledger().add(mib(1, 2), 10 * kMiB);
  ledger().advance(5 * kMiB);
  const auto none = [](ByteRange) { FAIL() << "too early"; };
  EXPECT_EQ(ledger().expire(5 * kMiB, none).items, 0u);
  ledger().advance(1);
  uint64_t expired_at = UINT64_MAX;
  EXPECT_EQ(ledger().expire(5 * kMiB, [&](ByteRange range) { expired_at = range.offset; }).bytes,
            kMiB);
  EXPECT_EQ(expired_at, 0u);
  EXPECT_EQ(ledger().bytes(), kMiB);
}

TEST_F(PrefetchLedgerTest, SkippedItemsExpire) {
  for (uint64_t i = 0; i < 6; ++i) ledger().add(mib(i, i + 1), 0);
  ledger().take(mib(4, 5));
  EXPECT_EQ(ledger().expire_skipped(2).items, 2u) << "0 and 1";
  EXPECT_EQ(ledger().find(kMiB), nullptr);
  EXPECT_NE(ledger().find(2 * kMiB), nullptr);
}

TEST_F(PrefetchLedgerTest, TheOldestItemMakesRoom) {
  for (uint64_t i = 0; i < PrefetchLedger::kItemsMax; ++i) ledger().add(mib(i, i + 1), 0);
  EXPECT_TRUE(ledger().is_full());
  EXPECT_EQ(ledger().expire_first().items, 1u);
  EXPECT_FALSE(ledger().is_full());
  EXPECT_EQ(ledger().find(0), nullptr);
  EXPECT_EQ(ledger().clear(), PrefetchLedger::kItemsMax - 1);
  EXPECT_TRUE(ledger().is_empty());
}

TEST_F(PrefetchLedgerTest, MoreUnusedThanUsedBytesPause) {
  use(4);
  miss(5);
  ledger().judge(10 * kMiB);
  EXPECT_FALSE(ledger().is_paused()) << "too few to judge";
  use(1);
  ledger().judge(10 * kMiB);
  EXPECT_FALSE(ledger().is_paused()) << "half were right";
  miss(6);
  use(4);
  ledger().judge(10 * kMiB);
  EXPECT_TRUE(ledger().is_paused());
  ledger().advance(512 * kMiB);
  EXPECT_FALSE(ledger().is_paused());
  miss(11);
  ledger().judge(10 * kMiB);
  EXPECT_TRUE(ledger().is_paused());
  ledger().reset();
  EXPECT_FALSE(ledger().is_paused());
}

}  // namespace
}  // namespace graphlane
