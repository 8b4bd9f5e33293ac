#include "adapters/share/memory/packed_partition.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

namespace graphlane::share {
namespace {

// Pairs of words below `limit`, as edges are, followed by `more` bytes.
std::string edges(size_t pairs, uint32_t limit, size_t more = 0) {
  std::mt19937 random(5);
  std::vector<uint32_t> words(2 * pairs);
  for (uint32_t& word : words) word = 7'000'000 + static_cast<uint32_t>(random() % limit);
  std::string bytes(reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]);
  return bytes + std::string(more, 'x');
}

std::shared_ptr<const PackedPartition> pack(const std::string& bytes) {
  const auto memory = make_sealed(bytes);
  return PackedPartition::pack(memory->get(), bytes.size());
}

std::string unpacked(const PackedPartition& packed, size_t size_bytes) {
  const Outcome<Fd> memory = packed.unpack();
  EXPECT_EQ(sealed_size(memory->get()).value(), size_bytes);
  const auto mapping = Mapping::of_sealed(memory->get(), size_bytes);
  return {mapping->data(), mapping->size()};
}

TEST(PackedPartitionTest, RestoresTheBytes) {
  for (const size_t pairs : {size_t{8192}, size_t{131072}, size_t{300'000}, size_t{524'289}}) {
    for (const size_t more : {size_t{0}, size_t{5}}) {
      const std::string bytes = edges(pairs, 1 << 15, more);
      const auto packed = pack(bytes);
      ASSERT_TRUE(packed) << pairs;
      EXPECT_LT(packed->bytes(), bytes.size() * 11 / 20)
          << "15 of 32 bits, and 12 bytes for each KiB";
      EXPECT_TRUE(unpacked(*packed, bytes.size()) == bytes) << pairs << " and " << more;
    }
  }
}

TEST(PackedPartitionTest, RestoresBytesOfWhichOnlyTheBeginPacks) {
  const std::string bytes = edges(131072, 1 << 10) + edges(131072, UINT32_MAX);
  const auto packed = pack(bytes);
  ASSERT_TRUE(packed);
  EXPECT_TRUE(unpacked(*packed, bytes.size()) == bytes);
}

// Where this process has memory that the kernel may reclaim.
std::vector<std::pair<char*, size_t>> yielded() {
  std::vector<std::pair<char*, size_t>> found;
  std::ifstream maps("/proc/self/smaps");
  uint64_t begin = 0, end = 0;
  for (std::string line; std::getline(maps, line);) {
    uint64_t first, last, kib;
    char dash, x;
    if (std::istringstream(line) >> std::hex >> first >> dash >> last && dash == '-') {
      begin = first;
      end = last;
    }
    if (std::sscanf(line.c_str(), "LazyFree: %lu k%c", &kib, &x) == 2 && kib > 0) {
      found.emplace_back(reinterpret_cast<char*>(begin), end - begin);
    }
  }
  return found;
}

TEST(PackedPartitionTest, NoticesReclaimedPages) {
  const std::string bytes = edges(131072, 1 << 15);
  const auto packed = pack(bytes);
  ASSERT_TRUE(packed);
  for (const auto& [begin, length] : yielded()) (void)::madvise(begin, length, MADV_PAGEOUT);
  const Outcome<Fd> memory = packed->unpack();
  if (memory) GTEST_SKIP() << "not applicable: this kernel takes nothing when it is asked to";
  EXPECT_EQ(memory.error().code, EAGAIN);
}

TEST(PackedPartitionTest, DeclinesBytesThatHardlyPack) {
  EXPECT_FALSE(pack(edges(131072, UINT32_MAX)));
  EXPECT_FALSE(pack(edges(100, 1 << 10))) << "less than it is worth";
  EXPECT_FALSE(pack({}));
}

}  // namespace
}  // namespace graphlane::share
