#include "adapters/share/coordinator/worker.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <memory>
#include <new>

namespace graphlane::share {
namespace {

class WorkerTest : public testing::Test {
 protected:
  void finish_all() {
    while (!worker_.idle()) {
      pollfd event{.fd = worker_.event(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&event, 1, 60'000), 1);
      worker_.finish();
    }
  }

  Worker worker_;
};

TEST_F(WorkerTest, CompletesEachTaskAfterItsWork) {
  std::array<std::atomic<bool>, 100> worked{};
  int completed = 0;
  for (std::atomic<bool>& it : worked) {
    const auto complete = [&] {
      EXPECT_TRUE(it.load());
      ++completed;
    };
    if (&it < &worked[50]) {
      worker_.read([&] { it = true; }, complete);
    } else {
      worker_.post([&] { it = true; }, complete);
    }
  }
  finish_all();
  EXPECT_EQ(completed, 100);
}

// The exception once ended the coordinator.
TEST_F(WorkerTest, CompletesATaskAfterAnException) {
  int completed = 0;
  worker_.read([] { throw std::bad_alloc(); }, [&] { ++completed; });
  worker_.post([] { throw std::bad_alloc(); }, [&] { ++completed; });
  worker_.post([] {}, [&] { ++completed; });
  finish_all();
  EXPECT_EQ(completed, 3);
}

// Freeing gigabytes would block the loop.
TEST_F(WorkerTest, FreesTheWorksCapturesBeforeCompletion) {
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> watched = held;
  worker_.post([held = std::move(held)] {}, [&] { EXPECT_TRUE(watched.expired()); });
  finish_all();
}

}  // namespace
}  // namespace graphlane::share
