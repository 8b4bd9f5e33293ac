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
    return std::make_unique<Turn>(turns_, file_id, thread, ByteRange{offset, kMiB});
  }
  const Uuid kFile = Uuid::random(), kOther = Uuid::random();
  ConvoyScheduler turns_;
};

TEST_F(ConvoySchedulerTest, TheFirstReaderOfTheFileLeads) {
  const auto behind = ask(2, 24 * kMiB);
  EXPECT_TRUE(behind->is_in_front(kReach));
  const auto front = ask(1, 0);
  EXPECT_TRUE(front->is_in_front(kReach));
  EXPECT_FALSE(behind->is_in_front(kReach));
  EXPECT_EQ(behind->front_count(kReach), 1u);
  EXPECT_EQ(behind->front_count(0), 2u) << "where nobody waits";
}

TEST_F(ConvoySchedulerTest, AFarTrailingReaderLeadsItself) {
  const auto front = ask(1, 0);
  EXPECT_FALSE(ask(2, kReach)->is_in_front(kReach));
  const auto alone = ask(2, kReach + 1);
  EXPECT_TRUE(alone->is_in_front(kReach));
  EXPECT_EQ(alone->front_count(kReach), 2u);
}

TEST_F(ConvoySchedulerTest, ReadersAtOnePlaceBothLead) {
  const auto one = ask(1, kMiB), other = ask(2, kMiB);
  EXPECT_TRUE(one->is_in_front(kReach));
  EXPECT_TRUE(other->is_in_front(kReach));
}

TEST_F(ConvoySchedulerTest, EachFileHasItsOwn) {
  const auto front = ask(1, 0, kOther);
  const auto alone = ask(2, kMiB);
  EXPECT_TRUE(alone->is_in_front(kReach));
  EXPECT_EQ(alone->front_count(0), 1u);
}

TEST_F(ConvoySchedulerTest, AReaderThatMovesAwayNoLongerLeads) {
  ask(1, 0);
  const auto behind = ask(2, 24 * kMiB);
  const auto beyond = ask(1, 48 * kMiB);
  EXPECT_TRUE(behind->is_in_front(kReach));
  EXPECT_FALSE(beyond->is_in_front(kReach));
}

TEST_F(ConvoySchedulerTest, AnIdleReaderNoLongerLeads) {
  std::optional<Turn> front(std::in_place, turns_, kFile, 1, ByteRange{0, kMiB});
  const auto behind = ask(2, kMiB);
  EXPECT_FALSE(behind->is_in_front(kReach));
  front.reset();
  behind->await(kReach, [] { return false; });
  EXPECT_TRUE(behind->is_in_front(kReach));
  EXPECT_EQ(behind->front_count(0), 1u);
}

// Asynchronous reads look so.
TEST_F(ConvoySchedulerTest, PiecesOfOneReaderDoNotWaitForEachOther) {
  const auto first = ask(1, 0), second = ask(1, kMiB);
  EXPECT_TRUE(second->is_in_front(kReach));
}

TEST_F(ConvoySchedulerTest, ThreadZeroAlwaysLeads) {
  const auto unknown = ask(0, 0), other = ask(2, kMiB);
  EXPECT_TRUE(other->is_in_front(kReach));
  EXPECT_TRUE(ask(0, 2 * kMiB)->is_in_front(kReach));
  EXPECT_EQ(unknown->front_count(0), 1u);
}

TEST_F(ConvoySchedulerTest, ReadersBeyondTheMaximumAlwaysLead) {
  std::vector<std::unique_ptr<Turn>> all;
  for (uint32_t thread = 1; thread <= 100; ++thread) all.push_back(ask(thread, thread * kMiB));
  EXPECT_FALSE(all[1]->is_in_front(kReach));
  EXPECT_TRUE(all[99]->is_in_front(kReach));
  all.clear();
  EXPECT_FALSE([&] {
    const auto front = ask(200, 0);
    return ask(201, kMiB)->is_in_front(kReach);
  }()) << "whose place has become free";
}

TEST_F(ConvoySchedulerTest, AWaiterEndsOnceItsFramesArePresent) {
  const auto front = ask(1, 0), behind = ask(2, kMiB);
  int looks = 0;
  behind->await(kReach, [&] { return ++looks == 3; });
  EXPECT_EQ(looks, 3);
  EXPECT_FALSE(behind->is_in_front(kReach));
}

TEST_F(ConvoySchedulerTest, RereadingLeadersAreNotWaitedForLong) {
  const auto front = ask(1, 0);
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
  EXPECT_EQ(looks, 2) << "since he was in front himself he is patient again";
}

}  // namespace
}  // namespace graphlane
