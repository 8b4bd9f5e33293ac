#include "adapters/share/schedule/stall_budget.h"

#include <gtest/gtest.h>

namespace graphlane::share {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(StallBudgetTest, ChargesOnlyWhileOthersWait) {
  StallBudget account;
  account.set_holding(1000 * kMs, true);
  account.set_holding(1300 * kMs, false);
  account.set_holding(1300 * kMs, true);
  EXPECT_EQ(account.exhausted_at_ns(), 1500 * kMs);
  EXPECT_FALSE(account.exhausted(1499 * kMs));
  EXPECT_TRUE(account.exhausted(1500 * kMs));
}

TEST(StallBudgetTest, ALeaseIsFree) {
  StallBudget account;
  account.lease(0, 100 * kMs);  // 2 × 100 + 10 ms
  account.set_holding(0, true);
  EXPECT_TRUE(account.leased(209 * kMs));
  EXPECT_FALSE(account.leased(210 * kMs));
  EXPECT_EQ(account.exhausted_at_ns(), 710 * kMs);
  EXPECT_FALSE(account.exhausted(709 * kMs));
  EXPECT_TRUE(account.exhausted(710 * kMs));
}

// The whole stall was once charged: a job twice as slow as another, in turns of a batch each, was
// late after a dozen turns.
TEST(StallBudgetTest, AnEarlyEndOfALeaseIsFree) {
  StallBudget account;
  for (uint64_t t = 0; t < 20'000; t += 100) {
    account.lease(t * kMs, 100 * kMs);
    account.set_holding((t + 50) * kMs, true);
    account.end_lease((t + 100) * kMs);
    account.set_holding((t + 100) * kMs, false);
  }
  EXPECT_FALSE(account.exhausted(20'000 * kMs));
}

TEST(StallBudgetTest, AStalledJobHoldsOthersUpForLessThanASecond) {
  for (const uint64_t expected_ns : {uint64_t{0}, uint64_t{1}, 400 * kMs, uint64_t{1} << 60}) {
    StallBudget account;
    account.lease(0, expected_ns);
    account.set_holding(0, true);
    EXPECT_TRUE(account.exhausted(999 * kMs)) << expected_ns;
  }
}

TEST(StallBudgetTest, ResetsAtTheEndOfASweep) {
  StallBudget account;
  account.set_holding(0, true);
  EXPECT_TRUE(account.exhausted(600 * kMs));
  account.reset();
  EXPECT_FALSE(account.exhausted(600 * kMs));
}

TEST(StallBudgetTest, RegainsCreditWhileItHoldsNoJobUp) {
  StallBudget account;
  account.set_holding(0, true);
  account.set_holding(400 * kMs, false);
  account.set_holding(2000 * kMs, true);  // 200 of the 400 ms again
  EXPECT_EQ(account.exhausted_at_ns(), 2300 * kMs);
  EXPECT_FALSE(account.exhausted(2299 * kMs));
  EXPECT_TRUE(account.exhausted(2300 * kMs));
}

}  // namespace
}  // namespace graphlane::share
