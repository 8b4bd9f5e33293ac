#include "adapters/share/memory/sealed_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "iomgr/base/files/reopen.h"

namespace graphlane::share {
namespace {

TEST(SealedMemoryTest, CannotBeChangedByAnyProcess) {
  const auto memory = make_sealed(std::string("edges"));
  ASSERT_TRUE(memory);
  EXPECT_LT(::pwrite(memory->get(), "E", 1, 0), 0);
  EXPECT_LT(::ftruncate(memory->get(), 1), 0);
  EXPECT_LT(::fallocate(memory->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 5), 0);
  EXPECT_EQ(::mmap(nullptr, 5, PROT_READ | PROT_WRITE, MAP_SHARED, memory->get(), 0), MAP_FAILED);
  // Opening it again does not help either, although its mode would allow that to the same user and
  // to root.
  const Fd again = reopen(memory->get(), O_RDWR);
  if (again) {
    EXPECT_LT(::pwrite(again.get(), "E", 1, 0), 0);
  }
  const auto mapping = Mapping::of_sealed(memory->get(), 5);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(std::memcmp(mapping->data(), "edges", 5), 0);
}

TEST(SealedMemoryTest, IsNotSealedWhileAWritableMappingExists) {
  auto memory = make_memory(4096);
  ASSERT_TRUE(memory);
  {
    auto mapping = Mapping::for_filling(memory->get(), 4096);
    ASSERT_TRUE(mapping);
    EXPECT_EQ(seal(memory->get()).error().code, EBUSY);
    EXPECT_FALSE(sealed_size(memory->get()));
  }
  EXPECT_TRUE(seal(memory->get()));
  EXPECT_EQ(sealed_size(memory->get()).value(), 4096u);
}

TEST(SealedMemoryTest, RejectsOrdinaryFiles) {
  const Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(sealed_size(file.get()));
}

TEST(SealedMemoryTest, MayBeEmpty) {
  const auto memory = make_sealed({});
  ASSERT_TRUE(memory);
  EXPECT_EQ(sealed_size(memory->get()).value(), 0u);
  EXPECT_TRUE(Mapping::of_sealed(memory->get(), 0));
}

}  // namespace
}  // namespace graphlane::share
