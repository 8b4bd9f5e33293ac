// CacheKeeper frees the memory of a cache that is idle, or that other programs need.
#include "iomgr/read/cache_keeper.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/eventually.h"
#include "tests/iomgr/base/process/memory_files.h"
#include "tests/iomgr/read/extent_fixture.h"

namespace graphlane {
namespace {

using namespace std::chrono_literals;

class CacheKeeperTest : public ExtentFixture {};

TEST_F(CacheKeeperTest, AnIdleCacheFreesItsMemoryAndStaysUsable) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  start(32 * kMiB);
  CacheKeeper keeper(*cache_, 1ms, 5ms);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(read({0, 4 * kMiB}) == expected({0, 4 * kMiB}));
    ASSERT_TRUE(eventually([&] { return cache_->stats().frames.resident_bytes == 0; }));
  }
  EXPECT_EQ(cache_->stats().budget_bytes, 32 * kMiB);
}

// A socket's urgent byte wakes it as the kernel's notification does.
TEST_F(CacheKeeperTest, MemoryPressureAdjustsTheBudgetAtOnce) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Fd kernel(ends[0]);
  const MemoryFiles memory;
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 32 * kMiB);
  restart({.budget_bytes = 32 * kMiB, .memory_root = memory.root()});
  for (uint64_t at = 0; at < 32 * kMiB; at += 4 * kMiB) read({at, 4 * kMiB});
  CacheKeeper keeper(*cache_, 1h, 1h, Fd(ends[1]));
  memory.set_available(8 * kMiB);
  if (::send(kernel.get(), "!", 1, MSG_OOB) != 1) GTEST_SKIP() << "no urgent bytes (Linux 5.15)";
  EXPECT_TRUE(eventually([&] { return cache_->stats().frames.resident_bytes <= 8 * kMiB; }));
}

TEST(MemoryPressureTest, PrefersTheCgroupToTheMachine) {
  const MemoryFiles files;
  EXPECT_FALSE(watch_memory_pressure(files.root()));
  files.write("/proc/pressure/memory", "");
  EXPECT_TRUE(watch_memory_pressure(files.root()));
  const auto said = [&](const char* name) {
    std::ifstream file(files.path(name));
    return std::string(std::istreambuf_iterator<char>(file), {}).substr(0, 19);
  };
  EXPECT_EQ(said("/proc/pressure/memory"), "some 100000 2000000");
  files.write("/proc/self/cgroup", "4:memory:/other\n0::/a/b\n");
  files.write("/sys/fs/cgroup/a/b/memory.pressure", "");
  EXPECT_TRUE(watch_memory_pressure(files.root()));
  EXPECT_EQ(said("/sys/fs/cgroup/a/b/memory.pressure"), "some 100000 2000000");
}

TEST(MemoryPressureTest, TheKernelUnderstands) {
  if (::access("/proc/pressure/memory", W_OK) != 0) GTEST_SKIP() << "no PSI here";
  const Fd fd = watch_memory_pressure();
  ASSERT_TRUE(fd);
  pollfd polled = {fd.get(), POLLPRI, 0};
  EXPECT_GE(::poll(&polled, 1, 0), 0);
  EXPECT_EQ(polled.revents & POLLERR, 0);
}

}  // namespace
}  // namespace graphlane
