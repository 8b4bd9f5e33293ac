#include "adapters/share/schedule/profile.h"

#include <gtest/gtest.h>

namespace graphlane::share {
namespace {

TEST(ProfileTest, SolvesFormulaTwo) {
  // T(F) = 3 ns, T(E) = 2 ns.
  Profile profile;
  profile.add(1000, 4000, 1000 * 3 + 4000 * 2);
  EXPECT_EQ(profile.costs().process_ps, 0u) << "one partition does not tell";
  profile.add(3000, 5000, 3000 * 3 + 5000 * 2);
  EXPECT_EQ(profile.costs().process_ps, 3000u);
  EXPECT_EQ(profile.costs().access_ps, 2000u);
  EXPECT_TRUE(profile.costs().access_measured);
}

TEST(ProfileTest, FormulasThreeAndFour) {
  Profile profile;
  profile.add(1000, 4000, 11'000);
  profile.add(3000, 5000, 19'000);
  const ChunkLoad load = profile.load(500, 2000);
  EXPECT_EQ(load.process_ns, 1500u);
  EXPECT_EQ(load.access_ns, 4000u);
}

TEST(ProfileTest, WithAllEdgesActiveAccessCostComesFromOtherJobs) {
  Profile alone;
  alone.add(1000, 1000, 5000);
  alone.add(3000, 3000, 15'000);
  EXPECT_EQ(alone.costs().process_ps, 5000u);
  EXPECT_EQ(alone.costs().access_ps, 0u);
  EXPECT_FALSE(alone.costs().access_measured);

  Profile informed(2000);
  informed.add(1000, 1000, 5000);
  informed.add(3000, 3000, 15'000);
  EXPECT_EQ(informed.costs().process_ps, 3000u);
  EXPECT_EQ(informed.costs().access_ps, 2000u);
  EXPECT_FALSE(informed.costs().access_measured);
}

TEST(ProfileTest, NoiseGivesNoNegativeCosts) {
  Profile profile;
  profile.add(1000, 4000, 9000);  // solved exactly: the time of an access would be negative
  profile.add(3000, 4000, 29'000);
  EXPECT_FALSE(profile.costs().access_measured);
  EXPECT_EQ(profile.costs().access_ps, 0u);
  EXPECT_EQ(profile.costs().process_ps, 9500u);
}

TEST(ProfileTest, OnlyTheFirstTwoActivePartitionsCount) {
  Profile profile;
  profile.add(0, 1000, 77);
  profile.add(1000, 4000, 11'000);
  profile.add(3000, 5000, 19'000);
  profile.add(1, 1, 1'000'000);
  EXPECT_EQ(profile.costs().process_ps, 3000u);
}

}  // namespace
}  // namespace graphlane::share
