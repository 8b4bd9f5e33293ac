// Available memory, from files as the kernel writes them. A machine has cgroups of one version
// only.
#include "iomgr/base/process/memory_limit.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/iomgr/base/process/memory_files.h"
#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr char kGroup[] = "/sys/fs/cgroup/system.slice/engine.service";

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() {
    files_.write("/proc/meminfo",
                 "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nMapped: 1048576 kB\n");
    files_.write("/proc/self/cgroup", "0::/system.slice/engine.service\n");
  }
  // The files of version 2.
  void write_group(const std::string& group, const std::string& high, const std::string& max) {
    files_.write(group + "/memory.high", high + "\n");
    files_.write(group + "/memory.max", max + "\n");
    files_.write(group + "/memory.current", std::to_string(300 * kMiB) + "\n");
    // A quarter of the 160 MiB is not page cache, and 40 MiB are mapped: 120 - 30 can be reclaimed.
    files_.write(group + "/memory.stat",
                 "anon 146800640\nfile 167772160\nshmem 41943040\n"
                 "file_mapped 41943040\nfile_dirty 0\n");
  }
  uint64_t available() const { return memory_available_bytes(files_.root()) / kMiB; }

  const MemoryFiles files_;
};

TEST_F(MemoryLimitTest, TheMachinesFreeMemoryExcludesMappedPages) {
  EXPECT_EQ(available(), 3072u);
  write_group(kGroup, "max", "max");
  EXPECT_EQ(available(), 3072u);
}

TEST_F(MemoryLimitTest, UnmappedPageCacheCountsAsFree) {
  write_group(kGroup, "max", std::to_string(1000 * kMiB));
  EXPECT_EQ(available(), 1000u - (300 - 90));
}

TEST_F(MemoryLimitTest, FreeMemoryEndsAtMemoryHigh) {
  write_group(kGroup, std::to_string(600 * kMiB), std::to_string(1000 * kMiB));
  EXPECT_EQ(available(), 600u - (300 - 90));
  write_group(kGroup, std::to_string(600 * kMiB), "max");
  EXPECT_EQ(available(), 600u - (300 - 90));
  write_group(kGroup, std::to_string(200 * kMiB), "max");
  EXPECT_EQ(available(), 0u);
}

TEST_F(MemoryLimitTest, FreeMemoryIsTheLeastOfAllGroups) {
  write_group(kGroup, "max", std::to_string(1000 * kMiB));
  write_group("/sys/fs/cgroup/system.slice", std::to_string(500 * kMiB), "max");
  EXPECT_EQ(available(), 500u - (300 - 90));
}

TEST_F(MemoryLimitTest, Version1NamesItsFilesDifferently) {
  files_.write("/proc/self/cgroup", "9:cpu,cpuacct:/\n4:memory:/engine\n0::/\n");
  const std::string group = "/sys/fs/cgroup/memory/engine";
  files_.write(group + "/memory.limit_in_bytes", std::to_string(1000 * kMiB) + "\n");
  files_.write(group + "/memory.usage_in_bytes", std::to_string(300 * kMiB) + "\n");
  files_.write(group + "/memory.stat",
               "cache 0\ntotal_cache 104857600\ntotal_shmem 0\n"
               "total_mapped_file 0\n");
  EXPECT_EQ(available(), 1000u - (300 - 100));
}

}  // namespace
}  // namespace graphlane
