#include "adapters/share/memory/packed_store.h"

#include <gtest/gtest.h>

namespace graphlane::share {
namespace {

class PackedStoreTest : public testing::Test {
 protected:
  PackedStoreTest() {
    std::string bytes(128 << 10, '\0');
    for (size_t i = 0; i < bytes.size(); i += 4) bytes[i] = static_cast<char>(i / 4 * 7);
    const auto memory = make_sealed(bytes);
    packed_ = PackedPartition::pack(memory->get(), bytes.size());
  }
  void keep(uint32_t partition, size_t count, uint64_t round = 0) {
    store_.keep(partition, packed_, round, count * packed_->bytes());
  }
  std::vector<uint32_t> kept() {
    std::vector<uint32_t> kept;
    for (uint32_t p = 0; p < 10; ++p) {
      if (store_.find(p, 0)) kept.push_back(p);
    }
    return kept;
  }

  PackedStore::Packed packed_;
  PackedStore store_;
};

TEST_F(PackedStoreTest, KeepsTheBeginOfTheGraph) {
  ASSERT_TRUE(packed_);
  for (const uint32_t p : {3, 1, 2, 5, 0, 4}) keep(p, 3);
  EXPECT_EQ(kept(), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(store_.bytes(), 3 * packed_->bytes());
  keep(0, 2);
  EXPECT_EQ(kept(), (std::vector<uint32_t>{0, 1}));
  keep(7, 0);
  EXPECT_EQ(store_.bytes(), 0u);
}

TEST_F(PackedStoreTest, EvictsStaleUnitsFirst) {
  for (const uint32_t p : {0, 1, 2}) keep(p, 3);
  for (const uint64_t round : {1, 2}) {
    EXPECT_EQ(store_.find(1, round), packed_);
    EXPECT_EQ(store_.find(2, round), packed_);
  }
  keep(5, 3, 2);
  EXPECT_EQ(kept(), (std::vector<uint32_t>{1, 2, 5}));
  EXPECT_EQ(store_.find(0, 2), nullptr);
}

TEST_F(PackedStoreTest, DroppedUnitsTakeNoMemory) {
  for (const uint32_t p : {0, 1}) keep(p, 3);
  store_.drop(0);
  store_.drop(0);
  EXPECT_EQ(store_.bytes(), packed_->bytes());
  store_.clear();
  EXPECT_EQ(store_.bytes(), 0u);
}

}  // namespace
}  // namespace graphlane::share
