// HotPolicy: the hot-aware cache's order (MaiterStore §3.4): the coldest value makes room, and only
// for a hotter one.
//
// Values stand in lists by the logarithm of their hotness, eight to a doubling; a bitmap tells
// which lists have any. So the coldest is found in constant time, up to the width of a list; within
// a list the oldest goes first.
#pragma once

#include <array>
#include <bit>
#include <cmath>

#include "adapters/kv/cache/eviction.h"

namespace graphlane::kv {

class HotPolicy final : public EvictionPolicy {
 public:
  explicit HotPolicy(HotnessKind kind) : kind_(kind) {}

  bool admits(uint64_t, float) override { return true; }
  void inserted(CacheEntry& entry) override {
    entry.list = list_of(entry.hotness);
    lists_[entry.list].push(entry);
    used_[entry.list / 64] |= uint64_t{1} << entry.list % 64;
  }
  void hit(CacheEntry& entry, float hotness) override {
    entry.hotness = kind_ == HotnessKind::kAccumulated ? entry.hotness + hotness : hotness;
    if (list_of(entry.hotness) == entry.list) return;
    removed(entry);
    inserted(entry);
  }
  CacheEntry* victim(float hotness) override {
    for (size_t word = 0; word < used_.size(); ++word) {
      for (uint64_t bits = used_[word]; bits != 0; bits &= bits - 1) {
        CacheEntry* const entry =
            lists_[word * 64 + static_cast<size_t>(std::countr_zero(bits))].oldest_free();
        if (entry != nullptr) return entry->hotness < hotness ? entry : nullptr;
      }
    }
    return nullptr;
  }
  void removed(CacheEntry& entry) override {
    lists_[entry.list].remove(entry);
    if (lists_[entry.list].empty()) used_[entry.list / 64] &= ~(uint64_t{1} << entry.list % 64);
  }

  // 0 for nothing; 1 … for 2^-128 and up. The exponent and the three highest bits of the fraction
  // of a float.
  static uint16_t list_of(float hotness) {
    if (!(hotness > 0)) return 0;
    return static_cast<uint16_t>(
        std::min<uint32_t>(std::bit_cast<uint32_t>(hotness) >> 20, kLists - 1));
  }

 private:
  static constexpr uint32_t kLists = 2048;
  const HotnessKind kind_;
  std::array<EntryList, kLists> lists_{};
  std::array<uint64_t, kLists / 64> used_{};
};

}  // namespace graphlane::kv
