// DeviceGate: which callers may use a device, and in which order.
#include "iomgr/io/device_gate.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/sizes.h"

namespace graphlane {
namespace {

struct Place : DeviceGate::Waiter {
  Place(GateCaller& who, uint64_t offset, int file = 3) {
    fd = file;
    part_offset = offset;
    caller = &who;
  }
};

TEST(DeviceGateTest, AdmitsAsManyAsItsWidth) {
  DeviceGate gate;
  EXPECT_FALSE(gate.is_narrow());
  gate.set_width(2);
  EXPECT_TRUE(gate.is_narrow());
  GateCaller caller;
  Place a(caller, 1), b(caller, 2), c(caller, 3);
  EXPECT_TRUE(gate.enter(&a));
  EXPECT_TRUE(gate.enter(&b));
  EXPECT_FALSE(gate.enter(&c));
  EXPECT_EQ(caller.notifications(), 0u);
  gate.leave();
  EXPECT_TRUE(c.entered);
  EXPECT_EQ(caller.notifications(), 1u);
  gate.leave();
  gate.leave();
  EXPECT_TRUE(gate.enter(&a));
  gate.leave();
}

TEST(DeviceGateTest, ServesUpwardsThenFromTheLowest) {
  DeviceGate gate;
  gate.set_width(1);
  GateCaller caller;
  constexpr uint64_t kFar = 16 << 20;
  Place first(caller, 50 * kFar);
  ASSERT_TRUE(gate.enter(&first));
  std::deque<Place> places;
  for (const uint64_t offset : {10, 70, 60, 50}) places.emplace_back(caller, offset * kFar);
  places.emplace_back(caller, 0, 4);  // another file
  for (Place& place : places) ASSERT_FALSE(gate.enter(&place));
  std::string order;
  for (size_t i = 0; i < places.size(); ++i) {
    gate.leave();
    for (Place& place : places) {
      if (!place.entered.exchange(false)) continue;
      order += std::to_string(place.fd) + ":" + std::to_string(place.part_offset / kFar) + " ";
    }
  }
  gate.leave();
  EXPECT_EQ(order, "3:50 3:60 3:70 4:0 3:10 ");
}

// Otherwise it would stay behind, and the head would alternate between it and the others.
TEST(DeviceGateTest, ASlightlyTrailingWaiterGoesFirst) {
  DeviceGate gate;
  gate.set_width(1);
  GateCaller caller;
  Place first(caller, 50 * kMiB);
  ASSERT_TRUE(gate.enter(&first));
  Place ahead(caller, 53 * kMiB), late(caller, 44 * kMiB), later(caller, 0);
  for (Place* place : {&ahead, &late, &later}) ASSERT_FALSE(gate.enter(place));
  for (Place* place : {&later, &late, &ahead}) {
    gate.leave();
    EXPECT_TRUE(place->entered) << place->part_offset / kMiB;
  }
  gate.leave();
}

// A stream could otherwise overtake it for ever.
TEST(DeviceGateTest, AnOvertakenWaiterGoesFirst) {
  constexpr uint64_t kBlock = 24 << 20;
  DeviceGate gate;
  gate.set_width(1);
  GateCaller caller;
  std::deque<Place> stream;
  stream.emplace_back(caller, 10 * kBlock);
  ASSERT_TRUE(gate.enter(&stream.back()));
  Place behind(caller, 0);
  ASSERT_FALSE(gate.enter(&behind));
  uint64_t overtaken = 0;
  for (uint64_t i = 11; i < 30 && !behind.entered; ++i) {
    stream.emplace_back(caller, i * kBlock).length_bytes = kBlock;
    ASSERT_FALSE(gate.enter(&stream.back()));
    gate.leave();
    if (!behind.entered) overtaken += kBlock;
  }
  EXPECT_TRUE(behind.entered);
  EXPECT_EQ(overtaken, Elevator::kOvertakingMax + kBlock);
}

// As many waiters as came before it are served before it.
TEST(DeviceGateTest, WaitersAreServedByPlace) {
  constexpr uint64_t kBlock = 24 << 20;
  DeviceGate gate;
  gate.set_width(1);
  GateCaller caller;
  Place first(caller, 0);
  ASSERT_TRUE(gate.enter(&first));
  std::deque<Place> places;
  for (const uint64_t place : {5, 1, 9, 3, 7, 8, 2, 6, 4}) {
    places.emplace_back(caller, place * kBlock).length_bytes = kBlock;
    ASSERT_FALSE(gate.enter(&places.back()));
  }
  for (uint64_t i = 1; i <= places.size(); ++i) {
    gate.leave();
    for (Place& place : places) {
      EXPECT_EQ(place.entered.exchange(false), place.part_offset == i * kBlock);
    }
  }
  gate.leave();
}

TEST(DeviceGateTest, GivingUpAdmitsTheNextWaiter) {
  DeviceGate gate;
  gate.set_width(1);
  GateCaller caller;
  Place a(caller, 1), b(caller, 2), c(caller, 3);
  ASSERT_TRUE(gate.enter(&a));
  ASSERT_FALSE(gate.enter(&b));
  ASSERT_FALSE(gate.enter(&c));
  gate.give_up(&b);  // a waiter
  gate.give_up(&a);  // an admitted caller
  EXPECT_FALSE(b.entered);
  EXPECT_TRUE(c.entered);
  gate.leave();
}

// The thread sanitizer runs this test too.
TEST(DeviceGateTest, NeverExceedsItsWidthAndForgetsNoWaiter) {
  constexpr uint32_t kWidth = 2;
  DeviceGate gate;
  gate.set_width(kWidth);
  std::atomic<uint32_t> inside{0};
  std::atomic<uint32_t> too_many{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 2000; ++round) {
        GateCaller caller;
        Place place(caller, random() % 100);
        const uint32_t told = caller.notifications();
        if (!gate.enter(&place)) {
          if (random() % 10 == 0) {
            gate.give_up(&place);
            continue;
          }
          while (!place.entered.load(std::memory_order_acquire)) caller.wait_after(told);
        }
        if (inside.fetch_add(1) >= kWidth) too_many.fetch_add(1);
        inside.fetch_sub(1);
        gate.leave();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(too_many, 0u);
  GateCaller caller;
  Place one(caller, 1), two(caller, 2);
  EXPECT_TRUE(gate.enter(&one));
  EXPECT_TRUE(gate.enter(&two));
  gate.leave();
  gate.leave();
}

}  // namespace
}  // namespace graphlane
