// What tests write into files: other bytes at every place. std::mt19937_64 takes three times as long where
// nothing is optimized.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace graphlane {

// Of each 64 bits those of the mask, by SplitMix64.
inline void fill(char* bytes, size_t size, uint64_t seed, uint64_t mask = UINT64_MAX) {
  uint64_t state = seed << 32;
  for (size_t at = 0; at < size; at += sizeof state) {
    uint64_t word = state += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    word = (word ^ word >> 31) & mask;
    std::memcpy(bytes + at, &word, std::min(sizeof word, size - at));
  }
}

}  // namespace graphlane
