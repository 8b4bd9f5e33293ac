// The pages with the counters of preloaded programs.
#include "iomgr/server/client_counts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace graphlane {
namespace {

class Program {
 public:
  explicit Program(int page)
      : memory_(::mmap(nullptr, kClientCountsBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0)) {}
  ~Program() {
    if (works()) ::munmap(memory_, kClientCountsBytes);
  }
  bool works() const { return memory_ != MAP_FAILED; }
  void reads(uint32_t device, uint64_t bytes) {
    auto* const counts = static_cast<DeviceCounts*>(memory_);
    counts[device].io_count += 1;
    counts[device].bytes_read += bytes;
  }

 private:
  void* const memory_;
};

TEST(ClientCountsTest, AddsUpTheProgramsOfAllUsers) {
  ClientCounts counts;
  EXPECT_EQ(counts.sums(2)[1].bytes_read, 0u);
  Program one(counts.page_of(1000)), same_user(counts.page_of(1000)), other(counts.page_of(1001));
  ASSERT_TRUE(one.works() && same_user.works() && other.works());
  one.reads(0, 10);
  same_user.reads(1, 20);
  other.reads(1, 5);
  const auto sums = counts.sums(2);
  EXPECT_EQ(sums[0].bytes_read, 10u);
  EXPECT_EQ(sums[1].bytes_read, 25u);
  EXPECT_EQ(sums[1].io_count, 2u);
}

TEST(ClientCountsTest, AUserCannotResizeItsPageNorReachAnothers) {
  ClientCounts counts;
  const int page = counts.page_of(1000);
  EXPECT_EQ(counts.page_of(1000), page);
  EXPECT_NE(counts.page_of(1001), page);
  EXPECT_NE(::ftruncate(page, 0), 0) << "the server would fault";
  struct stat st;
  ASSERT_EQ(::fstat(page, &st), 0);
  EXPECT_EQ(static_cast<size_t>(st.st_size), kClientCountsBytes);
}

TEST(ClientCountsTest, HasNoPageForTooManyUsers) {
  ClientCounts counts;
  uid_t user = 0;
  while (user < 1000 && counts.page_of(user) >= 0) ++user;
  EXPECT_LT(user, 1000u);
  EXPECT_GE(user, 32u);
  EXPECT_GE(counts.page_of(0), 0) << "those that have one keep it";
}

}  // namespace
}  // namespace graphlane
