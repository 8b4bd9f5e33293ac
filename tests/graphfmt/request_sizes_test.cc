#include "graphfmt/request_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "graphfmt/grid/grid_requests.h"
#include "iomgr/volume/volume.h"
#include "tests/sizes.h"

namespace graphlane::graphfmt {
namespace {

RequestSizes sizes_of(const std::vector<uint64_t>& list) {
  RequestSizes sizes;
  for (const uint64_t size : list) sizes.add(size);
  return sizes;
}

// Pages, few or many of them, as blocks of graphs are.
std::vector<uint64_t> random_requests(std::mt19937_64& random) {
  std::vector<uint64_t> list(1 + random() % 200);
  const uint64_t pages_max = uint64_t{1} << random() % 13;
  for (uint64_t& size : list) {
    size = kBlockSize * std::min<uint64_t>(1 + random() % pages_max, 6144);
  }
  return list;
}

TEST(RequestSizesTest, AgreesWithASortedList) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> list = random_requests(random);
    const RequestSizes sizes = sizes_of(list);
    std::sort(list.begin(), list.end());
    const uint64_t total = std::accumulate(list.begin(), list.end(), uint64_t{0});
    ASSERT_EQ(sizes.count(), list.size()) << "seed " << seed;
    ASSERT_EQ(sizes.mean_bytes(), (total + list.size() - 1) / list.size()) << "seed " << seed;
    ASSERT_EQ(sizes.median_bytes(), list[(list.size() - 1) / 2]) << "seed " << seed;
    ASSERT_EQ(sizes.max_bytes(), list.back()) << "seed " << seed;
  }
}

TEST(RequestSizesTest, NoRequestsHaveNoSize) {
  RequestSizes sizes;
  sizes.add(4096, 0);
  EXPECT_EQ(sizes.count(), 0u);
  EXPECT_EQ(sizes.mean_bytes() + sizes.median_bytes() + sizes.max_bytes(), 0u);
}

// CSMqGraph §4.5: mean 11 MB, best depth 12 MB.
TEST(AutoDepthTest, OfTwitterIsThePapers) {
  RequestSizes sizes;
  sizes.add(24 * kMiB, 10);
  sizes.add(2 * kMiB, 14);
  ASSERT_EQ(sizes.mean_bytes() / kMiB, 11u);
  EXPECT_EQ(auto_depth(sizes, uint64_t{11} << 30, 2, false, 48).bytes, 12 * kMiB);
}

// Two threads ask for 22 MiB at a time: of those, each of four devices is to have two units.
TEST(AutoDepthTest, OfFewThreadsIsLess) {
  RequestSizes sizes;
  sizes.add(24 * kMiB, 10);
  sizes.add(2 * kMiB, 14);
  const AutoDepth depth = auto_depth(sizes, uint64_t{11} << 30, 4, false, 2);
  EXPECT_EQ(depth.bytes, 3 * kMiB);
  EXPECT_EQ(depth.reason, DepthReason::kThreads);
  // never less for this
  EXPECT_EQ(auto_depth(sizes, uint64_t{11} << 30, 64, false, 1).bytes, kMiB);
}

TEST(AutoDepthTest, LiesBetweenMeanAndMaximumOrABoundSaysWhyNot) {
  int seen[6] = {};
  for (unsigned seed = 0; seed < 6000; ++seed) {
    std::mt19937_64 random(seed);
    const RequestSizes sizes = sizes_of(random_requests(random));
    const uint64_t swept = sizes.count() * sizes.mean_bytes() << random() % 8;
    const auto devices = static_cast<uint32_t>(2 + random() % 63);
    const auto threads = static_cast<uint32_t>(1 + random() % 256);
    const bool on_ssds = random() % 2 == 0;
    const AutoDepth depth = auto_depth(sizes, swept, devices, on_ssds, threads);
    const uint64_t in_flight = threads * sizes.mean_bytes();
    const uint64_t in_flight_share = kUnitsInFlight * devices * depth.bytes;
    const uint64_t least_unit_share = kUnitsPerDevice * devices * depth.bytes;
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_EQ(depth.bytes % kBlockSize, 0u);
    ASSERT_GE(depth.bytes, kAutoDepthMin);
    ASSERT_LE(depth.bytes, std::max(sizes.max_bytes(), kAutoDepthMin));
    ++seen[static_cast<int>(depth.reason)];
    switch (depth.reason) {
      case DepthReason::kRequests:
        ASSERT_GE(depth.bytes, sizes.mean_bytes());
        ASSERT_LE(least_unit_share, swept);
        break;
      case DepthReason::kThreads:
        ASSERT_EQ(depth.bytes % kMiB, 0u);
        ASSERT_LE(least_unit_share, swept);
        // As much as may be, but for the rounding.
        ASSERT_GE(in_flight_share, in_flight);
        ASSERT_LT(in_flight_share, in_flight + kUnitsInFlight * devices * kMiB);
        break;
      case DepthReason::kBalance:
        ASSERT_LE(least_unit_share, swept);
        // A page more would be too deep.
        ASSERT_GT(kUnitsPerDevice * devices * (depth.bytes + kBlockSize), swept);
        break;
      case DepthReason::kSsds:
        ASSERT_TRUE(on_ssds);
        ASSERT_EQ(depth.bytes, kStripeDepthSsd);
        ASSERT_GT(auto_depth(sizes, swept, devices, false, threads).bytes, depth.bytes);
        break;
      case DepthReason::kLeast: ASSERT_EQ(depth.bytes, kAutoDepthMin); break;
      case DepthReason::kUnknown: FAIL();
    }
  }
  for (const auto reason : {DepthReason::kRequests, DepthReason::kThreads, DepthReason::kBalance,
                            DepthReason::kSsds, DepthReason::kLeast}) {
    EXPECT_GT(seen[static_cast<int>(reason)], 100) << "hardly tested";
  }
}

TEST(AutoDepthTest, OfUnknownRequestsIsTheDefaultWithinTheSameBounds) {
  EXPECT_EQ(auto_depth({}, uint64_t{1} << 40, 4, false, 2).bytes, kStripeDepthDefault);
  EXPECT_EQ(auto_depth({}, uint64_t{1} << 40, 4, true, 2).bytes, kStripeDepthSsd);
  EXPECT_EQ(auto_depth({}, 16 * kMiB, 4, false, 2).bytes, kMiB);
  EXPECT_EQ(auto_depth({}, 1, 4, true, 2).bytes, kAutoDepthMin);
}

TEST(DevicesTouchedTest, AgreesWithTryingEveryPage) {
  for (const uint32_t devices : {2u, 3u, 4u}) {
    for (uint64_t depth_pages = 1; depth_pages <= 9; ++depth_pages) {
      const uint64_t depth = depth_pages * kBlockSize;
      const StripeMap map(
          {.stripe_depth_bytes = depth, .device_count = devices, .first_device = 1});
      for (uint64_t pages = 1; pages <= 40; ++pages) {
        double sum = 0;
        for (uint64_t at = 0; at < depth; at += kBlockSize) {
          std::vector<bool> touched(devices);
          for (uint64_t page = 0; page < pages; ++page) {
            touched[map.locate(at + page * kBlockSize).device_index] = true;
          }
          sum += static_cast<double>(std::count(touched.begin(), touched.end(), true));
        }
        ASSERT_NEAR(devices_touched(pages * kBlockSize, depth, devices),
                    sum / static_cast<double>(depth_pages), 1e-9)
            << devices << " devices, " << depth_pages << " pages a unit, " << pages << " asked for";
      }
    }
  }
  EXPECT_EQ(devices_touched(0, 4096, 2), 0);
}

TEST(GridRequestsTest, AskForEveryPageOnceAndNeverForMoreThan24MiB) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const bool weighted = seed % 2 != 0;
    const uint64_t edge = weighted ? 12 : 8, page = weighted ? 12288 : 4096;
    std::vector<int64_t> offsets{0};
    const uint64_t edges_max = uint64_t{1} << random() % 24;
    for (uint64_t blocks = 1 + random() % 64; blocks > 0; --blocks) {
      const uint64_t edges = random() % 3 == 0 ? 0 : random() % edges_max;
      offsets.push_back(offsets.back() + static_cast<int64_t>(edges * edge));
    }
    const auto end = static_cast<uint64_t>(offsets.back());
    const RequestSizes sizes = grid_requests(offsets, weighted);
    const uint64_t asked = (end + page - 1) / page * page;
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_LE(sizes.max_bytes(), kGridRequestMax);
    ASSERT_EQ(sizes.max_bytes() % page, 0u);
    if (end == 0) {
      ASSERT_EQ(sizes.count(), 0u);
    } else {
      ASSERT_EQ(sizes.mean_bytes(), (asked + sizes.count() - 1) / sizes.count());
      ASSERT_GE(sizes.count(), (asked + kGridRequestMax - 1) / kGridRequestMax);
    }
  }
}

TEST(GridRequestsTest, OfATableByHand) {
  // A block of 24 MiB and a byte's worth, an empty one, one within the page that was read
  // with the first, and one that begins in it.
  const int64_t first = static_cast<int64_t>(kGridRequestMax) + 8;
  const std::vector<int64_t> offsets{0, first, first, first + 80, first + 8192};
  const RequestSizes sizes = grid_requests(offsets, false);
  EXPECT_EQ(sizes.count(), 3u);  // 24 MiB, a page, two pages
  EXPECT_EQ(sizes.median_bytes(), 8192u);
  EXPECT_EQ(sizes.max_bytes(), kGridRequestMax);
  EXPECT_EQ(sizes.mean_bytes(), (kGridRequestMax + 4096 + 8192 + 2) / 3);
}

}  // namespace
}  // namespace graphlane::graphfmt
