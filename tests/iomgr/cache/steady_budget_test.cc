#include "iomgr/cache/steady_budget.h"

#include <gtest/gtest.h>

namespace graphlane {
namespace {

constexpr uint64_t kStep = 16;

class SteadyBudgetTest : public ::testing::Test {
 protected:
  SteadyBudgetTest() { budget_.set(100); }
  SteadyBudget budget_{kStep};
};

TEST_F(SteadyBudgetTest, ShrinksAtOnce) {
  EXPECT_TRUE(budget_.adjust(99));
  EXPECT_EQ(budget_.bytes(), 99);
}

TEST_F(SteadyBudgetTest, GrowsWhenTheRoomHasLasted) {
  EXPECT_FALSE(budget_.adjust(200));
  budget_.count_read(399);
  EXPECT_FALSE(budget_.adjust(200));
  budget_.count_read(1);
  EXPECT_TRUE(budget_.adjust(200));
  EXPECT_EQ(budget_.bytes(), 200);
}

// A program may allocate late: memory that was free before does not belong to the cache.
TEST_F(SteadyBudgetTest, GrowsToTheLeastRoomMeanwhile) {
  EXPECT_FALSE(budget_.adjust(200));
  budget_.count_read(200);
  EXPECT_FALSE(budget_.adjust(120));
  budget_.count_read(200);
  EXPECT_TRUE(budget_.adjust(200));
  EXPECT_EQ(budget_.bytes(), 120);
}

TEST_F(SteadyBudgetTest, GrowsByAtLeastAStep) {
  budget_.count_read(1000);
  EXPECT_FALSE(budget_.adjust(100 + kStep - 1));
  EXPECT_EQ(budget_.bytes(), 100);
}

TEST_F(SteadyBudgetTest, PatienceStartsAgainAfterEachChange) {
  budget_.count_read(400);
  EXPECT_TRUE(budget_.adjust(150));
  EXPECT_FALSE(budget_.adjust(300));
  EXPECT_TRUE(budget_.adjust(40));
  EXPECT_FALSE(budget_.adjust(300));
  EXPECT_EQ(budget_.bytes(), 40);
}

// An empty budget has nothing to wait for.
TEST_F(SteadyBudgetTest, AnEmptyBudgetGrowsAtOnce) {
  EXPECT_TRUE(budget_.adjust(0));
  EXPECT_TRUE(budget_.adjust(50));
  EXPECT_EQ(budget_.bytes(), 50);
}

}  // namespace
}  // namespace graphlane
