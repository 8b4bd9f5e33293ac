// Arcs as they are sorted: one number of 64 bits, and a weight beside it or not.
//
//   key = first << 32 | second      by source: first is the source; by target: first is the target
//
// sort_arcs() is a stable radix sort: arcs with one key stay in the order in which they came.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace graphlane::graphfmt {

struct Arc {
  uint64_t key;
};
struct WeightedArc {
  uint64_t key;
  uint64_t weight;  // its bits, of 4 or 8 bytes
};

constexpr uint64_t arc_key(uint32_t first, uint32_t second) {
  return uint64_t{first} << 32 | second;
}
constexpr uint32_t first_of(uint64_t key) { return static_cast<uint32_t>(key >> 32); }
constexpr uint32_t second_of(uint64_t key) { return static_cast<uint32_t>(key); }

namespace internal {

inline constexpr unsigned kRadixBits = 8;

template <class A>
void radix_pass(const A* from, size_t count, A* to, unsigned shift) {
  std::array<size_t, size_t{1} << kRadixBits> next{};
  constexpr uint64_t kMask = (uint64_t{1} << kRadixBits) - 1;
  for (size_t i = 0; i < count; ++i) ++next[from[i].key >> shift & kMask];
  size_t start = 0;
  for (size_t& place : next) start += std::exchange(place, start);
  for (size_t i = 0; i < count; ++i) to[next[from[i].key >> shift & kMask]++] = from[i];
}

}  // namespace internal

// Sorts `arcs`, by way of `scratch` of the same size. Returns where the sorted arcs are: `arcs` or
// `scratch`.
template <class A>
A* sort_arcs(A* arcs, A* scratch, size_t count) {
  uint64_t varying = 0;
  bool is_sorted = true;
  for (size_t i = 1; i < count; ++i) {
    varying |= arcs[i].key ^ arcs[0].key;
    is_sorted &= arcs[i - 1].key <= arcs[i].key;
  }
  if (is_sorted) return arcs;
  if (count < 256) {
    std::stable_sort(arcs, arcs + count, [](const A& a, const A& b) { return a.key < b.key; });
    return arcs;
  }
  // Digits begin at bits that vary.
  while (varying != 0) {
    const unsigned shift = static_cast<unsigned>(std::countr_zero(varying));
    internal::radix_pass(arcs, count, scratch, shift);
    std::swap(arcs, scratch);
    const unsigned end = shift + internal::kRadixBits;
    varying = end >= 64 ? 0 : varying & ~uint64_t{0} << end;
  }
  return arcs;
}

}  // namespace graphlane::graphfmt
