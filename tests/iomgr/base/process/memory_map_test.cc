// The process's memory map: the kernel's query and its text file agree.
#include "iomgr/base/process/memory_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

namespace graphlane {
namespace {

constexpr size_t kSystemPage = 4096;
using Find = bool (*)(int, uintptr_t, MemoryArea*);

uintptr_t address_of(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

class MemoryMapTest : public ::testing::TestWithParam<Find> {
 protected:
  MemoryArea area_at(const void* memory) {
    MemoryArea area;
    EXPECT_TRUE(GetParam()(maps_.get(), address_of(memory), &area));
    EXPECT_LE(area.begin, address_of(memory));
    EXPECT_GT(area.end, address_of(memory));
    return area;
  }
  void* map(int protection, int flags, int fd = -1) {
    void* const memory = ::mmap(nullptr, 4 * kSystemPage, protection, flags, fd, 0);
    EXPECT_NE(memory, MAP_FAILED);
    mapped_.push_back(memory);
    return memory;
  }
  void TearDown() override {
    for (void* memory : mapped_) ::munmap(memory, 4 * kSystemPage);
  }

  const Fd maps_ = open_memory_map();
  std::vector<void*> mapped_;
};

TEST_P(MemoryMapTest, DescribesMemoryAreas) {
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  const MemoryArea own = area_at(map(kBoth, MAP_PRIVATE | MAP_ANONYMOUS));
  EXPECT_TRUE(own.is_private_and_writable() && own.inode == 0 && !own.is_stack);
  EXPECT_FALSE(area_at(map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS)).is_private_and_writable());
  EXPECT_TRUE(area_at(map(kBoth, MAP_SHARED | MAP_ANONYMOUS)).shared);
  const int here = 0;
  EXPECT_TRUE(area_at(&here).is_stack);
  EXPECT_TRUE(area_at(reinterpret_cast<const void*>(&::mmap)).executable);
}

TEST_P(MemoryMapTest, KnowsTheFileBehindIt) {
  const Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  struct stat st;
  ASSERT_EQ(::fstat(file.get(), &st), 0);
  const MemoryArea area = area_at(map(PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get()));
  EXPECT_EQ(area.inode, st.st_ino);
  EXPECT_TRUE(area.is_private_and_writable());
}

TEST_P(MemoryMapTest, ErrnoStays) {
  errno = EXDEV;
  MemoryArea area;
  EXPECT_FALSE(GetParam()(maps_.get(), UINTPTR_MAX - kSystemPage, &area));
  EXPECT_FALSE(GetParam()(-1, 0, &area));
  EXPECT_EQ(errno, EXDEV);
}

INSTANTIATE_TEST_SUITE_P(Ways, MemoryMapTest, ::testing::Values(&find_area, &find_area_in_text));

TEST(MemoryMap, BothWaysAgree) {
  const Fd maps = open_memory_map();
  MemoryArea asked, read;
  int count = 0;
  for (uintptr_t at = 0; find_area(maps.get(), at, &asked); at = asked.end) {
    ASSERT_TRUE(find_area_in_text(maps.get(), at, &read));
    EXPECT_EQ(asked.begin, read.begin);
    EXPECT_EQ(asked.end, read.end);
    EXPECT_EQ(asked.is_private_and_writable(), read.is_private_and_writable());
    EXPECT_EQ(asked.is_stack, read.is_stack);
    EXPECT_EQ(asked.inode, read.inode);
    count += 1;
  }
  EXPECT_GT(count, 10);
}

TEST(MemoryMap, AreasOfARangeAreVisitedAndGapsReported) {
  const Fd maps = open_memory_map();
  auto* const memory = static_cast<char*>(
      ::mmap(nullptr, 4 * kSystemPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(memory + kSystemPage, kSystemPage, PROT_READ), 0);
  std::vector<bool> writable;
  const auto visit = [&](const MemoryArea& area) {
    return writable.push_back(area.writable), true;
  };
  const uintptr_t begin = address_of(memory);
  EXPECT_TRUE(for_each_area(maps.get(), begin, begin + 3 * kSystemPage, visit));
  EXPECT_EQ(writable, (std::vector<bool>{true, false, true}));
  EXPECT_FALSE(for_each_area(maps.get(), begin, begin + 3 * kSystemPage,
                             [](const MemoryArea&) { return false; }));
  uintptr_t end = 0;
  EXPECT_TRUE(for_each_area(maps.get(), begin + 100, begin + 200, [&](const MemoryArea& area) {
    EXPECT_EQ(area.begin, begin + 100);
    return end = area.end, true;
  }));
  EXPECT_EQ(end, begin + 200);
  ASSERT_EQ(::munmap(memory + 2 * kSystemPage, kSystemPage), 0);
  EXPECT_FALSE(for_each_area(maps.get(), begin, begin + 3 * kSystemPage, visit));
  ::munmap(memory, 4 * kSystemPage);
}

TEST(MemoryMap, PopulatesWritableMemoryOnly) {
  auto* const memory = static_cast<char*>(
      ::mmap(nullptr, 4 * kSystemPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  errno = EXDEV;
  EXPECT_TRUE(populate_writable(memory + 100, 2 * kSystemPage));
  unsigned char present[4];
  ASSERT_EQ(::mincore(memory, 4 * kSystemPage, present), 0);
  EXPECT_TRUE((present[0] & present[1] & present[2] & 1) != 0);
  EXPECT_EQ(present[3] & 1, 0);
  ASSERT_EQ(::mprotect(memory + kSystemPage, kSystemPage, PROT_READ), 0);
  EXPECT_FALSE(populate_writable(memory, 2 * kSystemPage));
  ASSERT_EQ(::munmap(memory + kSystemPage, kSystemPage), 0);
  EXPECT_FALSE(populate_writable(memory + 100, kSystemPage));
  EXPECT_TRUE(populate_writable(memory + 100, kSystemPage - 100));
  EXPECT_EQ(errno, EXDEV);
  ::munmap(memory, 4 * kSystemPage);
}

}  // namespace
}  // namespace graphlane
