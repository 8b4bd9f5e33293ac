// Traces of frame indices that test the cache's policies. Sizes are in frames; each trace is
// endless.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tests/iomgr/cache/cache_fixture.h"

namespace graphlane {

using Trace = std::function<uint64_t()>;

// 0, 1, …, length - 1, 0, 1, …: an engine's iterations over a file.
inline Trace sweeps(uint64_t length) {
  return [=, i = uint64_t{0}]() mutable { return i++ % length; };
}

// Sweeps by threads. Each thread takes the next block, and reads it in bursts of up to `burst`
// frames, so the order of the frames differs in each sweep.
inline Trace sweeps_of_threads(uint64_t length, size_t thread_count, uint64_t block,
                               uint64_t burst) {
  struct Reader {
    uint64_t at = 0;
    uint64_t end = 0;
  };
  auto readers = std::make_shared<std::vector<Reader>>(thread_count);
  return [=, random = std::mt19937_64(7), next = uint64_t{0}, left = uint64_t{0},
          reader = readers->data()]() mutable {
    if (left-- == 0) {
      reader = &(*readers)[random() % thread_count];
      left = random() % burst;
    }
    if (reader->at == reader->end) {
      *reader = {.at = next, .end = next + block};
      next += block;
    }
    return reader->at++ % length;
  };
}

inline Trace uniform(uint64_t length, uint64_t first = 0) {
  return [=, random = std::mt19937_64(1)]() mutable { return first + random() % length; };
}

// The k-th most popular of `length` frames is read in proportion to k^-skew, at random positions of
// the file. Degrees of real graphs have about this distribution.
inline Trace zipf(uint64_t length, double skew) {
  auto sums = std::make_shared<std::vector<double>>();
  for (uint64_t k = 1; k <= length; ++k) {
    sums->push_back((sums->empty() ? 0 : sums->back()) + std::pow(static_cast<double>(k), -skew));
  }
  auto frames = std::make_shared<std::vector<uint64_t>>(length);
  std::iota(frames->begin(), frames->end(), uint64_t{0});
  std::shuffle(frames->begin(), frames->end(), std::mt19937_64(2));
  return [=, random = std::mt19937_64(3)]() mutable {
    const double at = static_cast<double>(random() >> 11) * 0x1p-53 * sums->back();
    const auto found = std::lower_bound(sums->begin(), sums->end() - 1, at);
    return (*frames)[static_cast<size_t>(found - sums->begin())];
  };
}

// One access of each in turn. `b` lies behind `a` in the file.
inline Trace in_turn(Trace a, Trace b, uint64_t b_first) {
  return [=, i = uint64_t{0}]() mutable { return i++ % 2 == 0 ? a() : b_first + b(); };
}

// Two jobs that sweep the same file, the second `distance` behind the first.
inline Trace two_jobs(uint64_t length, uint64_t distance) {
  return [=, i = uint64_t{0}]() mutable {
    const uint64_t at = i / 2;
    return (i++ % 2 == 0 ? at : at + length - distance) % length;
  };
}

// The hit rate over `count` accesses.
inline double hit_ratio(TestCache& test, const Trace& trace, uint64_t count, uint64_t file = 1) {
  uint64_t hits = 0;
  for (uint64_t i = 0; i < count; ++i) hits += test.access(key_of(file, trace()));
  return static_cast<double>(hits) / static_cast<double>(count);
}

// The hit rate once it is stable.
inline double steady_ratio(CachePolicy policy, uint64_t frame_count, Trace trace) {
  TestCache test(frame_count, policy);
  hit_ratio(test, std::ref(trace), frame_count * 32);
  return hit_ratio(test, std::ref(trace), frame_count * 32);
}

}  // namespace graphlane
