#include "iomgr/base/parallel_for.h"

#include <gtest/gtest.h>

#include <array>

namespace graphlane {
namespace {

TEST(ParallelForTest, DoesAllAndThenThrowsWhatOneThrew) {
  for (uint32_t bad = 0; bad < 4; ++bad) {  // the last one is done by this thread
    std::array<std::atomic<int>, 4> done{};
    EXPECT_THROW(parallel_for(4,
                              [&](uint32_t i) {
                                ++done[i];
                                if (i == bad) throw std::bad_alloc();
                              }),
                 std::bad_alloc);
    for (const std::atomic<int>& one : done) EXPECT_EQ(one, 1);
  }
  parallel_for(0, [](uint32_t) { throw std::bad_alloc(); });
}

}  // namespace
}  // namespace graphlane
