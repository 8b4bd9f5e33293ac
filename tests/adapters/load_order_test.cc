#include "adapters/share/schedule/load_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace graphlane::share {
namespace {

PartitionSet set_of(uint32_t count, std::initializer_list<uint32_t> members) {
  PartitionSet set(count);
  for (const uint32_t p : members) set.add(p);
  return set;
}

std::vector<uint32_t> order(const std::vector<PartitionSet>& jobs, uint32_t count) {
  std::vector<const PartitionSet*> needs;
  for (const PartitionSet& job : jobs) needs.push_back(&job);
  return load_order(needs, count);
}

TEST(LoadOrderTest, TheJobWithFewPartitionsComesFirst) {
  // A BFS that needs partition 2 alone beside a PageRank over four: 2 has 1/1 × 2, the
  // others 1/4 × 1.
  EXPECT_EQ(order({PartitionSet(4, true), set_of(4, {2})}, 4), (std::vector<uint32_t>{2, 0, 1, 3}));
}

TEST(LoadOrderTest, BreaksTiesByPlaceInTheGraph) {
  EXPECT_EQ(order({PartitionSet(5, true)}, 5), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
}

TEST(LoadOrderTest, GraphOrderIgnoresPriorities) {
  const PartitionSet all(4, true), one = set_of(4, {2});
  const PartitionSet* const needs[] = {&all, &one};
  EXPECT_EQ(load_order(needs, 4, LoadOrder::kGraph), (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(LoadOrderTest, IsEmptyWithoutNeeds) {
  EXPECT_TRUE(order({}, 3).empty());
  EXPECT_TRUE(order({PartitionSet(3)}, 3).empty());
}

TEST(LoadOrderTest, FollowsFormulaFive) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const uint32_t count = random() % 90 + 1;
    std::vector<PartitionSet> jobs;
    for (uint32_t j = random() % 6; j > 0; --j) {
      PartitionSet needs(count);
      for (uint32_t p = 0; p < count; ++p) {
        if (random() % 3 == 0) needs.add(p);
      }
      jobs.push_back(needs);
    }
    // Pri(P^i) as it is printed.
    std::vector<long double> priority(count);
    for (uint32_t p = 0; p < count; ++p) {
      long double highest = 0;
      int job_count = 0;
      for (const PartitionSet& job : jobs) {
        if (!job.has(p)) continue;
        highest = std::max(highest, 1.0L / job.count());
        ++job_count;
      }
      priority[p] = highest * job_count;
    }
    std::vector<uint32_t> expected(count);
    std::iota(expected.begin(), expected.end(), 0u);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](uint32_t a, uint32_t b) { return priority[a] > priority[b] + 1e-12L; });
    std::erase_if(expected, [&](uint32_t p) { return priority[p] == 0; });
    ASSERT_EQ(order(jobs, count), expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace graphlane::share
