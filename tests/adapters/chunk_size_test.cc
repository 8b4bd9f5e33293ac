#include "adapters/share/schedule/chunk_size.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace graphlane::share {
namespace {

// Formula 1 as printed, for one candidate, in long double, with a margin for rounding.
bool fits(const ChunkSizing& s, uint64_t chunk_bytes) {
  const long double all = static_cast<long double>(chunk_bytes) * s.core_count;
  return all + all / s.graph_bytes * s.vertex_count * s.vertex_bytes + s.reserved_bytes <=
         static_cast<long double>(s.cache_bytes) * (1 + 1e-15L);
}

TEST(ChunkSizeTest, IsTheLargestUnderFormulaOne) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const ChunkSizing sizing{.cache_bytes = (random() % 64 + 1) << 20,
                             .reserved_bytes = random() % (1 << 20),
                             .core_count = static_cast<uint32_t>(random() % 64 + 1),
                             .graph_bytes = random() % (uint64_t{1} << 40) + 1,
                             .vertex_count = random() % 2'000'000'000,
                             .vertex_bytes = random() % 64,
                             .record_bytes = random() % 2 ? 8u : 12u};
    const uint64_t unit = sizing.record_bytes == 8 ? 64 : 192;
    const uint64_t chunk = chunk_size_bytes(sizing);
    ASSERT_EQ(chunk % unit, 0u) << i;
    ASSERT_GE(chunk, unit) << i;
    if (chunk > unit) {
      ASSERT_TRUE(fits(sizing, chunk)) << i;
    }
    ASSERT_FALSE(fits(sizing, chunk + unit)) << i;
  }
}

TEST(ChunkSizeTest, WorkedByHand) {
  // 20 MB of cache, 8 cores, Twitter of the paper: 10.9 GB, 41.7 M vertices of 8 bytes.
  const ChunkSizing twitter{.cache_bytes = 20'000'000,
                            .reserved_bytes = 2'000'000,
                            .core_count = 8,
                            .graph_bytes = 10'900'000'000,
                            .vertex_count = 41'700'000,
                            .vertex_bytes = 8,
                            .record_bytes = 8};
  // 18'000'000 / 8 / (1 + 333.6e6 / 10.9e9) = 2183182.8; the multiple of 64 below.
  EXPECT_EQ(chunk_size_bytes(twitter), 2'183'168u);
}

TEST(ChunkSizeTest, WithoutCacheItIsTheSmallestMultiple) {
  EXPECT_EQ(chunk_size_bytes({.cache_bytes = 100,
                              .reserved_bytes = 100,
                              .core_count = 1,
                              .graph_bytes = 1,
                              .vertex_count = 1,
                              .vertex_bytes = 1,
                              .record_bytes = 12}),
            192u);
}

class SysfsTest : public testing::Test {
 protected:
  SysfsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "share-cpu-XXXXXX").string();
    cpu_ = ::mkdtemp(name.data());
  }
  ~SysfsTest() override { std::filesystem::remove_all(cpu_); }

  void add(int index, const char* level, const char* type, const char* size, const char* shared) {
    const std::string dir = cpu_ + "/cache/index" + std::to_string(index);
    std::filesystem::create_directories(dir);
    std::ofstream(dir + "/level") << level << "\n";
    std::ofstream(dir + "/type") << type << "\n";
    std::ofstream(dir + "/size") << size << "\n";
    std::ofstream(dir + "/shared_cpu_list") << shared << "\n";
  }

  std::string cpu_;
};

TEST_F(SysfsTest, TakesTheHighestLevelAndItsCoreCount) {
  add(0, "1", "Data", "48K", "0");
  add(1, "1", "Instruction", "32K", "0");
  add(2, "3", "Unified", "20480K", "0-7,16-23");
  add(3, "2", "Unified", "1024K", "0,16");
  const LastLevelCache cache = read_last_level_cache(cpu_);
  EXPECT_EQ(cache.size_bytes, 20u << 20);
  EXPECT_EQ(cache.core_count, 16u);
}

TEST_F(SysfsTest, FallsBackWithoutSysfs) {
  EXPECT_EQ(read_last_level_cache(cpu_).size_bytes, 8u << 20);
  EXPECT_GE(read_last_level_cache(cpu_).core_count, 1u);
  add(0, "3", "Unified", "plenty", "x");
  EXPECT_EQ(read_last_level_cache(cpu_).size_bytes, 8u << 20);
}

}  // namespace
}  // namespace graphlane::share
