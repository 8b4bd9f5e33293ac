#include "iomgr/base/process/progress.h"

#include <gtest/gtest.h>

#include "iomgr/base/process/terminal.h"

namespace graphlane {
namespace {

using std::chrono::milliseconds;

const ProgressState kHalf{
    .label = "import", .total = uint64_t{4} << 30, .done = uint64_t{2} << 30, .seconds = 10};

TEST(ProgressTest, TellsHowLongTheRestTakes) {
  EXPECT_EQ(progress_line(kHalf, 0), "import: 2G of 4G (50%), 205 MiB/s, 10 s left");
  ProgressState slow = kHalf;
  slow.seconds = 1200;
  EXPECT_NE(progress_line(slow, 0).find(", 20 min left"), std::string::npos);
  slow.seconds = 10000;
  EXPECT_NE(progress_line(slow, 0).find(", 2 h 46 min left"), std::string::npos);
}

TEST(ProgressTest, TellsNoRestThatItCannotKnow) {
  for (const ProgressState& state :
       {ProgressState{.label = "a", .done = 5, .seconds = 10},
        ProgressState{.label = "b", .total = 10, .done = 0, .seconds = 10},
        ProgressState{.label = "c", .total = 10, .done = 10, .seconds = 10},
        ProgressState{.label = "d", .total = 10, .done = 12, .seconds = 10},
        ProgressState{.label = "e", .total = 10, .done = 5, .seconds = 0}}) {
    EXPECT_EQ(progress_line(state, 0).find("left"), std::string::npos) << state.label;
  }
  EXPECT_EQ(progress_line({.label = "d", .total = 10, .unit_is_bytes = false, .done = 12}, 0),
            "d: 12 of 10 (100%)");
}

TEST(ProgressTest, ASlowSpeedHasAFraction) {
  ProgressState state{.label = "i", .total = 20, .unit_is_bytes = false, .done = 5, .seconds = 10};
  EXPECT_EQ(progress_line(state, 0), "i: 5 of 20 (25%), 0.5/s, 30 s left");
  state.seconds = 0.25;
  EXPECT_EQ(progress_line(state, 0), "i: 5 of 20 (25%), 20/s");
}

TEST(ProgressTest, FitsEveryTerminal) {
  ProgressState long_label = kHalf;
  long_label.label = "sort soc-LiveJournal1-α";
  for (const ProgressState& state : {kHalf, long_label}) {
    for (size_t columns = 1; columns < 200; ++columns) {
      EXPECT_LT(columns_in(progress_line(state, columns)), columns);
    }
  }
}

TEST(ProgressTest, LeavesOutTheBarThenTheSpeedThenTheAmounts) {
  EXPECT_EQ(progress_line(kHalf, 80),
            "import: 2G of 4G (50%) [============            ], 205 MiB/s, 10 s left");
  EXPECT_EQ(progress_line(kHalf, 60), "import: 2G of 4G (50%), 205 MiB/s, 10 s left");
  EXPECT_EQ(progress_line(kHalf, 40), "import: 2G of 4G (50%), 10 s left");
  EXPECT_EQ(progress_line(kHalf, 30), "import: (50%), 10 s left");
  EXPECT_EQ(progress_line(kHalf, 5), "impo");
}

TEST(ProgressTest, PlainLinesBecomeRare) {
  int lines = 0;
  milliseconds now(1000);
  for (; now < std::chrono::hours(1); now += plain_line_interval(now)) ++lines;
  EXPECT_GT(lines, 20);
  EXPECT_LT(lines, 60);
  EXPECT_EQ(plain_line_interval(milliseconds(1000)), std::chrono::seconds(5));
  EXPECT_EQ(plain_line_interval(std::chrono::hours(9)), std::chrono::minutes(5));
}

}  // namespace
}  // namespace graphlane
