// CacheKeeper: memory comes back from a cache that nobody uses.
#include "iomgr/cache_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/iomgr/extent_fixture.h"

namespace graphlane {
namespace {

using namespace std::chrono_literals;

class CacheKeeperTest : public ExtentFixture {};

TEST_F(CacheKeeperTest, AnIdleCacheGivesAllBackAndServesOn) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  start(32 * kMiB);
  CacheKeeper keeper(*cache_, 1ms, 5ms);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(read({0, 4 * kMiB}) == expected({0, 4 * kMiB}));
    while (cache_->stats().frames.resident_bytes > 0) std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(cache_->stats().budget_bytes, 32 * kMiB);
}

}  // namespace
}  // namespace graphlane
