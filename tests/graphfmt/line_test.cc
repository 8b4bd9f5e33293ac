#include "graphfmt/sort/line.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

namespace graphlane::graphfmt {
namespace {

struct Item {
  int number = 0;
};

// A line that counts, and remembers what it unloaded.
struct Counting {
  explicit Counting(int count) {
    line.load = [this, count](Item& item) -> Outcome<bool> {
      item.number = next;
      return next++ < count;
    };
    line.unload = [this](Item& item) {
      unloaded.push_back(item.number);
      return Outcome<void>();
    };
  }
  int next = 0;
  std::vector<int> unloaded;
  Line<Item> line;
};

TEST(LineTest, UnloadsInTheOrderOfLoading) {
  for (const unsigned threads : {1u, 2u, 9u}) {
    std::vector<int> expected(1000);
    std::iota(expected.begin(), expected.end(), 0);
    Counting counting(1000);
    counting.line.work = [](Item& item) {
      if (item.number % 7 == 0) std::this_thread::yield();
      return Outcome<void>();
    };
    ASSERT_TRUE(counting.line.run(threads));
    EXPECT_EQ(counting.unloaded, expected) << threads << " threads";
  }
}

TEST(LineTest, ReportsTheErrorThatIsFirstInTheStream) {
  for (int round = 0; round < 50; ++round) {
    Counting counting(1000);
    counting.line.work = [](Item& item) -> Outcome<void> {
      if (item.number >= 100) return make_error(EINVAL, "{}", item.number);
      return {};
    };
    auto done = counting.line.run(4);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().text, "100");
    EXPECT_EQ(counting.unloaded.size(), 100u);
  }
}

TEST(LineTest, AnErrorOfLoadWaitsForTheItemsBeforeIt) {
  Counting counting(1000);
  counting.line.load = [&counting](Item& item) -> Outcome<bool> {
    if (counting.next == 20) return make_error(EIO, "torn");
    item.number = counting.next++;
    return true;
  };
  EXPECT_EQ(counting.line.run(4).error().text, "torn");
  EXPECT_EQ(counting.unloaded.size(), 20u);
}

TEST(LineTest, SettlesEveryItemOnce) {
  Counting counting(100);
  std::atomic<int> sum{0};
  counting.line.settle = [&](Item& item) {
    sum += item.number;
    return Outcome<void>();
  };
  ASSERT_TRUE(counting.line.run(3));
  EXPECT_EQ(sum, 99 * 100 / 2);
}

TEST(LineTest, AnErrorOfSettleEndsTheLine) {
  Counting counting(1'000'000'000);
  counting.line.settle = [](Item& item) -> Outcome<void> {
    if (item.number == 50) return make_error(ENOSPC, "full");
    return {};
  };
  EXPECT_EQ(counting.line.run(3).error().text, "full");
}

TEST(LineTest, TurnsAFailedAllocationIntoAnError) {
  Counting counting(10);
  counting.line.work = [](Item&) -> Outcome<void> { throw std::bad_alloc(); };
  EXPECT_EQ(counting.line.run(2).error().code, ENOMEM);
}

}  // namespace
}  // namespace graphlane::graphfmt
