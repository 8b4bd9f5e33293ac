// The hit rate of each policy on the traces of cache_traces.h. experiments/RESULTS.md has the rates
// of the same traces.
#include "iomgr/cache/cache_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/iomgr/cache/cache_traces.h"

namespace graphlane {
namespace {

constexpr uint64_t kFrames = 256;
constexpr CachePolicy kAll[] = {CachePolicy::kLru, CachePolicy::kFifo, CachePolicy::kScanResistant,
                                CachePolicy::kHotAware};

struct PolicyRow {
  const char* name;
  Trace trace;
  double least[4];  // by policy, in the order of kAll
};

TEST(CachePolicyTest, HitRatesReachTheirPromises) {
  const PolicyRow rows[] = {
      //                                               lru   fifo  scan  hot
      {"half the cache", sweeps(kFrames / 2), {1.00, 1.00, 1.00, 1.00}},
      {"the cache", sweeps(kFrames), {1.00, 1.00, 1.00, 1.00}},
      {"1.1 x the cache", sweeps(kFrames * 11 / 10), {0.00, 0.00, 0.84, 0.84}},
      {"2 x the cache", sweeps(kFrames * 2), {0.00, 0.00, 0.46, 0.44}},
      {"4 x the cache", sweeps(kFrames * 4), {0.00, 0.00, 0.23, 0.23}},
      {"zipf 0.9", zipf(kFrames * 4, 0.9), {0.64, 0.59, 0.64, 0.72}},
      {"zipf 0.6", zipf(kFrames * 4, 0.6), {0.41, 0.38, 0.42, 0.50}},
      // Half of the accesses go to a set that fits, which gives at most 0.5. The sweeps add a few
      // hits.
      // again and again a little on top.
      {"hot set and what comes once",
       in_turn(uniform(kFrames / 2), sweeps(uint64_t{1} << 40), kFrames),
       {0.34, 0.27, 0.49, 0.49}},
      {"hot set and sweeps",
       in_turn(uniform(kFrames / 2), sweeps(kFrames * 4), kFrames),
       {0.34, 0.27, 0.54, 0.54}},
      {"two jobs, close", two_jobs(kFrames * 2, kFrames / 50), {0.50, 0.50, 0.72, 0.68}},
      {"two jobs, a quarter of the cache apart",
       two_jobs(kFrames * 2, kFrames / 4),
       {0.50, 0.50, 0.60, 0.46}},
  };
  for (const PolicyRow& row : rows) {
    for (size_t p = 0; p < std::size(kAll); ++p) {
      const double ratio = steady_ratio(kAll[p], kFrames, row.trace);
      EXPECT_GE(ratio, row.least[p] - 0.001) << name_of(kAll[p]) << ", " << row.name;
    }
  }
}

// A server gives a small cache to a job, and a file's size is seldom a multiple of the sets.
TEST(CachePolicyTest, ScanResistanceWorksWithFewSets) {
  for (const uint64_t frames : {16, 20, 64, 250, 1000}) {
    const double ratio = steady_ratio(CachePolicy::kScanResistant, frames, sweeps(frames * 2));
    EXPECT_GE(ratio, 0.45) << frames << " frames";
  }
}

TEST(CachePolicyTest, ScanResistanceFollowsAMovingWorkingSet) {
  TestCache test(kFrames, CachePolicy::kScanResistant);
  hit_ratio(test, sweeps(kFrames * 2), kFrames * 40);
  Trace moved = sweeps(kFrames * 3 / 4);
  hit_ratio(test, std::ref(moved), 2 * (kFrames * 3 / 4), 2);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(hit_ratio(test, std::ref(moved), kFrames * 3 / 4, 2), 1.0);
  }
  // Back to sweeps.
  Trace sweep = sweeps(kFrames * 2);
  hit_ratio(test, std::ref(sweep), kFrames * 16);
  EXPECT_GE(hit_ratio(test, std::ref(sweep), kFrames * 4), 0.45);
}

// GridGraph's PageRank reads its rows once, for the degrees, and then sweeps over its columns. Rows
// are evicted in the first sweep, so the second one hits.
TEST(CachePolicyTest, ScanResistanceEvictsFramesReadOnce) {
  for (const uint64_t percent : {125, 250, 600, 1200}) {
    TestCache test(kFrames, CachePolicy::kScanResistant);
    const uint64_t length = kFrames * percent / 100;
    hit_ratio(test, sweeps(length), length, 2);
    Trace columns = sweeps(length);
    hit_ratio(test, std::ref(columns), length);
    const double most = 100.0 * 15 / 16 / static_cast<double>(percent);
    EXPECT_GE(hit_ratio(test, std::ref(columns), length), 0.95 * most) << percent << " %";
  }
}

// A disk takes as long to skip scattered cached bytes as to read them. So the cache must end with
// the beginning of the file, whatever it kept at first.
TEST(CachePolicyTest, ScanResistanceKeepsTheBeginningOfAFile) {
  TestCache test(kFrames, CachePolicy::kScanResistant);
  const uint64_t length = kFrames * 5 / 2;
  Trace scattered = [random = std::mt19937_64(4), length]() mutable { return random() % length; };
  hit_ratio(test, std::ref(scattered), kFrames * 8);
  Trace sweep = sweeps(length);
  hit_ratio(test, std::ref(sweep), length * 16);
  EXPECT_EQ(hit_ratio(test, std::ref(sweep), kFrames * 7 / 8), 1.0);
  EXPECT_LE(hit_ratio(test, std::ref(sweep), length - kFrames * 7 / 8), 0.05);
}

// Reordered reads of a sweep are not reuse: four readers of 24 MiB each, in a cache of 256 MiB. The
// best hit rate is (ways - 1) / ways of the cache.
TEST(CachePolicyTest, ScanResistanceRecognizesASweepOfManyThreads) {
  for (const uint64_t percent : {125, 200, 400}) {
    const double most = 100.0 * 15 / 16 / static_cast<double>(percent);
    for (const uint64_t thread_count : {1, 2, 4, 6}) {
      for (const uint64_t block : {4, 24}) {
        const uint64_t length = kFrames * percent / 100;
        const double ratio = steady_ratio(CachePolicy::kScanResistant, kFrames,
                                          sweeps_of_threads(length, thread_count, block, 2));
        EXPECT_GE(ratio, 0.95 * most) << percent << " %, " << thread_count << " threads, " << block;
      }
    }
  }
}

// Frames read more than once are kept, whether all of them fit or not. (A set's time advances with
// misses, so where all fit, the last filled frame has not been seen again.)
TEST(CachePolicyTest, ScanResistanceKeepsReusedFrames) {
  for (const uint64_t percent : {50, 90, 200}) {
    TestCache test(kFrames, CachePolicy::kScanResistant);
    const uint64_t length = kFrames * percent / 100;
    Trace sweep = sweeps(length);
    hit_ratio(test, std::ref(sweep), 4 * length);
    const double before = hit_ratio(test, std::ref(sweep), length);
    hit_ratio(test, sweeps(uint64_t{1} << 40), 2 * kFrames, 2);
    EXPECT_GE(hit_ratio(test, std::ref(sweep), length), 0.85 * before) << percent << " %";
  }
}

// A sweep over many files in turn, as GraphChi's over its shards, loses nothing either.
TEST(CachePolicyTest, ScanResistanceRecognizesASweepOverManyFiles) {
  for (const uint64_t files : {2, 5, 12}) {
    TestCache test(kFrames, CachePolicy::kScanResistant);
    const uint64_t each = 2 * kFrames / files;
    double hits = 0;
    for (int sweep = 0; sweep < 3; ++sweep) {
      hits = 0;
      for (uint64_t file = 0; file < files; ++file) {
        hits += hit_ratio(test, sweeps(each), each, file) / static_cast<double>(files);
      }
      if (sweep == 0) continue;
      EXPECT_GE(hits, 0.42) << files << " files, sweep " << sweep;
    }
  }
}

// Two jobs need more probation than one does.
TEST(CachePolicyTest, ProbationShrinksAgain) {
  TestCache test(kFrames, CachePolicy::kScanResistant);
  hit_ratio(test, two_jobs(kFrames * 2, kFrames * 2 / 5), kFrames * 64);
  Trace sweep = sweeps(kFrames * 2);
  hit_ratio(test, std::ref(sweep), kFrames * 64);
  EXPECT_GE(hit_ratio(test, std::ref(sweep), kFrames * 4), 0.45);
}

TEST(CachePolicyTest, ScanResistanceHoldsAfterShrinking) {
  TestCache test(kFrames, CachePolicy::kScanResistant);
  hit_ratio(test, sweeps(kFrames), kFrames * 2);
  ASSERT_TRUE(test.cache.resize(test.memory.bytes().size() * 3 / 4));
  Trace sweep = sweeps(kFrames * 3 / 2);
  hit_ratio(test, std::ref(sweep), kFrames * 16);
  EXPECT_GE(hit_ratio(test, std::ref(sweep), kFrames * 3), 0.45);
}

// In the middle of a sweep, the end of the kept range is evicted: its beginning is read next.
TEST(CachePolicyTest, ScanResistanceEvictsFromTheEndOfAFile) {
  TestCache test(kFrames, CachePolicy::kScanResistant);
  const uint64_t length = kFrames * 2;
  Trace sweep = sweeps(length);
  hit_ratio(test, std::ref(sweep), length * 8 + length * 3 / 4);
  ASSERT_TRUE(test.cache.resize(test.memory.bytes().size() * 3 / 4));
  hit_ratio(test, std::ref(sweep), length / 4);
  EXPECT_EQ(hit_ratio(test, std::ref(sweep), kFrames * 5 / 8), 1.0);
}

// An engine reads a frame of 1 MiB in pieces of 64 KiB: that counts as one use.
TEST(CachePolicyTest, PiecesOfAFrameCountAsOneUse) {
  TestCache test(kFrames, CachePolicy::kScanResistant);
  uint64_t hits = 0;
  const uint64_t warm = kFrames * 16;
  const uint64_t count = kFrames * 16;
  for (uint64_t i = 0; i < warm + count; ++i) {
    const FrameKey key = key_of(1, i % (kFrames * 2));
    hits += test.access(key) && i >= warm ? 1 : 0;
    for (int piece = 1; piece < 16; ++piece) EXPECT_TRUE(test.access(key));
  }
  EXPECT_GE(static_cast<double>(hits) / count, 0.45);
}

TEST(CachePolicyTest, HeatDecays) {
  TestCache test(kFrames, CachePolicy::kHotAware);
  hit_ratio(test, sweeps(kFrames / 2), kFrames * 200);
  Trace moved = sweeps(kFrames);
  hit_ratio(test, std::ref(moved), kFrames * 80, 2);
  EXPECT_EQ(hit_ratio(test, std::ref(moved), kFrames, 2), 1.0);
}

// Plain remainders would put these strides into a single set.
TEST(CachePolicyTest, StridesSpreadOverTheSets) {
  for (const uint64_t stride : {2, 16, 64, 256, 65536}) {
    TestCache test(kFrames, CachePolicy::kLru);
    Trace trace = [stride, i = uint64_t{0}]() mutable { return i++ % (kFrames / 2) * stride; };
    hit_ratio(test, std::ref(trace), kFrames);
    EXPECT_GE(hit_ratio(test, std::ref(trace), kFrames), 0.9) << stride;
  }
}

TEST(CachePolicyTest, ManyFilesShareTheCache) {
  TestCache test(kFrames, CachePolicy::kScanResistant);
  uint64_t hits = 0;
  for (int round = 0; round < 20; ++round) {
    hits = 0;
    for (uint64_t i = 0; i < kFrames * 3 / 4; ++i) hits += test.access(key_of(i / 12, i % 12));
  }
  EXPECT_GE(static_cast<double>(hits) / (kFrames * 3 / 4), 0.93);
}

}  // namespace
}  // namespace graphlane
