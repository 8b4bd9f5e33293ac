// SmallReads: when the kernel is asked first, after hits and misses.
#include "iomgr/read/small_reads.h"

#include <gtest/gtest.h>

namespace graphlane {
namespace {

class SmallReadsTest : public ::testing::Test {
 protected:
  enum class Kernel { kHit, kMiss, kFails };

  // The number of reads of the parts until the kernel is asked.
  int parts_reads_until(Kernel kernel) {
    int count = 0;
    while (count < 10'000) {
      const auto read = [&]() -> ssize_t {
        if (kernel == Kernel::kMiss) served_ += 1;
        return kernel == Kernel::kFails ? -1 : 4096;
      };
      bool is_asked = false;
      const auto got = reads_.by_kernel([&] {
        is_asked = true;
        return read();
      });
      if (is_asked) {
        EXPECT_EQ(got.has_value(), kernel != Kernel::kFails);
        return count;
      }
      ++count;
    }
    return count;
  }

  std::atomic<uint64_t> served_{0};
  std::atomic<uint64_t> by_kernel_{0};
  SmallReads reads_;
};

TEST_F(SmallReadsTest, WithoutAServerTheKernelIsNeverAsked) {
  EXPECT_EQ(parts_reads_until(Kernel::kHit), 10'000);
}

TEST_F(SmallReadsTest, AsksTheKernelAfterARunOfReadsAndThenWhileItHits) {
  reads_.begin(&served_, &by_kernel_);
  EXPECT_EQ(parts_reads_until(Kernel::kHit), 16);
  EXPECT_EQ(parts_reads_until(Kernel::kHit), 0);
  EXPECT_EQ(by_kernel_, 2u);
}

TEST_F(SmallReadsTest, EachMissInARowDoublesTheRun) {
  reads_.begin(&served_, &by_kernel_);
  for (const int run : {16, 16, 32, 64, 128, 256, 512, 512}) {
    EXPECT_EQ(parts_reads_until(Kernel::kMiss), run);
  }
  EXPECT_EQ(parts_reads_until(Kernel::kHit), 512);
  EXPECT_EQ(parts_reads_until(Kernel::kMiss), 0);
  EXPECT_EQ(parts_reads_until(Kernel::kHit), 16) << "a hit has made the run short again";
}

TEST_F(SmallReadsTest, AFailureIsAMissAndIsNotCounted) {
  reads_.begin(&served_, &by_kernel_);
  errno = EEXIST;
  EXPECT_EQ(parts_reads_until(Kernel::kFails), 16);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(by_kernel_, 0u);
  reads_.end();
  EXPECT_EQ(parts_reads_until(Kernel::kHit), 10'000);
}

}  // namespace
}  // namespace graphlane
