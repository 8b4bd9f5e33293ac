// LatencyHistogram: counts durations by powers of two.
//
//   bucket   0      1      2      …  i                   …  23
//   µs      <1   [1,2)  [2,4)        [2^(i-1), 2^i)         4 s and more
//
// Threads: safe from any thread. Relaxed throughout: the counts order nothing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

namespace graphlane {

inline constexpr uint32_t kLatencyBuckets = 24;

using LatencyCounts = std::array<uint64_t, kLatencyBuckets>;

class LatencyHistogram {
 public:
  void add(std::chrono::steady_clock::duration time) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    const auto bucket = static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(us)));
    counts_[std::min(bucket, kLatencyBuckets - 1)].fetch_add(1, std::memory_order_relaxed);
  }

  LatencyCounts counts() const {
    LatencyCounts counts;
    for (uint32_t i = 0; i < kLatencyBuckets; ++i) {
      counts[i] = counts_[i].load(std::memory_order_relaxed);
    }
    return counts;
  }

 private:
  std::array<std::atomic<uint64_t>, kLatencyBuckets> counts_{};
};

}  // namespace graphlane
