// Content of test files: different bytes at every position. std::mt19937_64 takes three times as
// long in unoptimized builds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace graphlane {

// The masked bits of each 64, by SplitMix64.
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
