// ConvoyScheduler: which reader leads.
#include "iomgr/read/convoy_scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kReach = 32 * kMiB;

class ConvoySchedulerTest : public ::testing::Test {
 protected:
  using Turn = ConvoyScheduler::Turn;
  std::unique_ptr<Turn> ask(uint32_t thread, uint64_t offset) { return ask(thread, offset, kFile); }
  std::unique_ptr<Turn> ask(uint32_t thread, uint64_t offset, const Uuid& file_id) {
    return std::make_unique<Turn>(scheduler_, file_id, thread, ByteRange{offset, kMiB});
  }
  const Uuid kFile = Uuid::random(), kOther = Uuid::random();
  ConvoyScheduler scheduler_;
};

TEST_F(ConvoySchedulerTest, TheFirstReaderOfTheFileLeads) {
  const auto follower = ask(2, 24 * kMiB);
  EXPECT_TRUE(follower->leads(kReach));
  const auto leader = ask(1, 0);
  EXPECT_TRUE(leader->leads(kReach));
  EXPECT_FALSE(follower->leads(kReach));
  EXPECT_EQ(follower->leader_count(kReach), 1u);
  EXPECT_EQ(follower->leader_count(0), 2u) << "where nobody waits";
}

TEST_F(ConvoySchedulerTest, AFarTrailingReaderLeadsItself) {
  const auto leader = ask(1, 0);
  EXPECT_FALSE(ask(2, kReach)->leads(kReach));
  const auto alone = ask(2, kReach + 1);
  EXPECT_TRUE(alone->leads(kReach));
  EXPECT_EQ(alone->leader_count(kReach), 2u);
}

TEST_F(ConvoySchedulerTest, ReadersAtOnePlaceBothLead) {
  const auto one = ask(1, kMiB), other = ask(2, kMiB);
  EXPECT_TRUE(one->leads(kReach));
  EXPECT_TRUE(other->leads(kReach));
}

TEST_F(ConvoySchedulerTest, EachFileHasItsOwn) {
  const auto leader = ask(1, 0, kOther);
  const auto alone = ask(2, kMiB);
  EXPECT_TRUE(alone->leads(kReach));
  EXPECT_EQ(alone->leader_count(0), 1u);
}

TEST_F(ConvoySchedulerTest, AReaderThatMovesAwayNoLongerLeads) {
  ask(1, 0);
  const auto follower = ask(2, 24 * kMiB);
  const auto beyond = ask(1, 48 * kMiB);
  EXPECT_TRUE(follower->leads(kReach));
  EXPECT_FALSE(beyond->leads(kReach));
}

TEST_F(ConvoySchedulerTest, AnIdleReaderNoLongerLeads) {
  std::optional<Turn> leader(std::in_place, scheduler_, kFile, 1, ByteRange{0, kMiB});
  const auto follower = ask(2, kMiB);
  EXPECT_FALSE(follower->leads(kReach));
  leader.reset();
  follower->await(kReach, [] { return false; });
  EXPECT_TRUE(follower->leads(kReach));
  EXPECT_EQ(follower->leader_count(0), 1u);
}

// Asynchronous reads look so.
TEST_F(ConvoySchedulerTest, PiecesOfOneReaderDoNotWaitForEachOther) {
  const auto first = ask(1, 0), second = ask(1, kMiB);
  EXPECT_TRUE(second->leads(kReach));
}

TEST_F(ConvoySchedulerTest, ThreadZeroAlwaysLeads) {
  const auto unknown = ask(0, 0), other = ask(2, kMiB);
  EXPECT_TRUE(other->leads(kReach));
  EXPECT_TRUE(ask(0, 2 * kMiB)->leads(kReach));
  EXPECT_EQ(unknown->leader_count(0), 1u);
}

TEST_F(ConvoySchedulerTest, ReadersBeyondTheMaximumAlwaysLead) {
  std::vector<std::unique_ptr<Turn>> all;
  for (uint32_t thread = 1; thread <= 100; ++thread) all.push_back(ask(thread, thread * kMiB));
  EXPECT_FALSE(all[1]->leads(kReach));
  EXPECT_TRUE(all[99]->leads(kReach));
  all.clear();
  EXPECT_FALSE([&] {
    const auto leader = ask(200, 0);
    return ask(201, kMiB)->leads(kReach);
  }()) << "whose place has become free";
}

TEST_F(ConvoySchedulerTest, AWaiterEndsOnceItsFramesArePresent) {
  const auto leader = ask(1, 0), follower = ask(2, kMiB);
  int looks = 0;
  follower->await(kReach, [&] { return ++looks == 3; });
  EXPECT_EQ(looks, 3);
  EXPECT_FALSE(follower->leads(kReach));
}

TEST_F(ConvoySchedulerTest, RereadingLeadersAreNotWaitedForLong) {
  const auto leader = ask(1, 0);
  int looks = 0;
  const auto not_yet = [&] {
    ++looks;
    for (int i = 0; i < 64; ++i) ask(3, 0);
    return false;
  };
  ask(2, kMiB)->await(kReach, not_yet);
  EXPECT_GT(looks, 1);
  looks = 0;
  ask(2, 2 * kMiB)->await(kReach, not_yet);
  EXPECT_EQ(looks, 1) << "nor for each piece anew";
  ask(2, 0)->await(kReach, not_yet);
  looks = 0;
  ask(2, kMiB)->await(kReach, [&] { return ++looks == 2; });
  EXPECT_EQ(looks, 2) << "it has led since, so it waits again";
}

}  // namespace
}  // namespace graphlane
