// A cache with memory of its own. Each frame contains the key that it was filled for.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/cache/cache.h"

namespace graphlane {

class Mapping {
 public:
  explicit Mapping(size_t bytes, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
      : bytes_(bytes), begin_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (begin_ != MAP_FAILED) ::munmap(begin_, bytes_);
  }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(begin_), bytes_}; }
  void wipe_on_fork() const { ASSERT_EQ(::madvise(begin_, bytes_, MADV_WIPEONFORK), 0); }

  // Pages that occupy memory.
  size_t resident_pages() const {
    std::vector<unsigned char> pages((bytes_ + 4095) / 4096);
    EXPECT_EQ(::mincore(begin_, bytes_, pages.data()), 0);
    size_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return count;
  }

 private:
  size_t bytes_;
  void* begin_;
};

inline FrameKey key_of(uint64_t file, uint64_t frame_index, uint64_t generation = 0) {
  FrameKey key{.file_id = {}, .generation = generation, .frame_index = frame_index};
  // File ids are random, and the cache relies on that.
  const uint64_t low = (file + 1) * 0x9e3779b97f4a7c15;
  const uint64_t high = (file + 1) * 0xc2b2ae3d27d4eb4f;
  std::memcpy(key.file_id.bytes.data(), &low, 8);
  std::memcpy(key.file_id.bytes.data() + 8, &high, 8);
  return key;
}

// A frame's content: the key and the number of its fill, at both ends.
struct Stamp {
  FrameKey key;
  uint64_t fill = 0;

  static Stamp of(const FrameKey& key, uint64_t fill = 0) { return {key, fill}; }
  void write(std::span<std::byte> bytes) const {
    std::memcpy(bytes.data(), this, sizeof *this);
    std::memcpy(bytes.data() + bytes.size() - sizeof *this, this, sizeof *this);
  }
  bool is_in(std::span<const std::byte> bytes) const {
    return std::memcmp(bytes.data(), this, sizeof *this) == 0 &&
           std::memcmp(bytes.data() + bytes.size() - sizeof *this, this, sizeof *this) == 0;
  }
};
static_assert(sizeof(Stamp) == 40);

struct TestCache {
  TestCache(uint64_t frame_count, CachePolicy policy, uint64_t frame_bytes = kBlockSize)
      : memory(frame_count * frame_bytes), metadata(FrameCache::metadata_bytes(frame_count)) {
    EXPECT_TRUE(cache.init({.frame_bytes = frame_bytes, .policy = policy, .budget_bytes = 0},
                           memory.bytes(), metadata.bytes()));
  }

  // Reads a frame as a caller does. Returns whether it was a hit.
  bool access(const FrameKey& key, uint64_t fill = 0) {
    if (cache.find(key)) return true;
    Reservation reservation = cache.reserve(key);
    if (reservation.kind == Reservation::Kind::kFill) {
      Stamp::of(key, fill).write(reservation.fill.bytes());
      reservation.fill.publish(cache.frame_bytes());
    }
    return reservation.kind == Reservation::Kind::kHit;
  }

  Mapping memory;
  Mapping metadata;
  FrameCache cache;
};

// For INSTANTIATE_TEST_SUITE_P.
inline auto all_policies() {
  return ::testing::Values(CachePolicy::kLru, CachePolicy::kFifo, CachePolicy::kScanResistant,
                           CachePolicy::kHotAware);
}
inline std::string policy_test_name(const ::testing::TestParamInfo<CachePolicy>& row) {
  std::string name = name_of(row.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace graphlane
