// The address mapping agrees with a byte-by-byte model: exhaustively for small geometries, then for
// random large ones.
#include "iomgr/volume/stub/stripe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace graphlane {
namespace {

// The model: deals the bytes out one by one.
struct Model {
  Model(const StripeGeometry& g, uint64_t size_bytes) : parts(g.device_count) {
    for (uint64_t offset = 0; offset < size_bytes; ++offset) {
      const auto device =
          static_cast<uint32_t>((offset / g.stripe_depth_bytes + g.first_device) % g.device_count);
      places.push_back({.device_index = device, .part_offset = parts[device].size()});
      parts[device].push_back(offset);
    }
  }
  std::vector<PartLocation> places;          // by logical offset
  std::vector<std::vector<uint64_t>> parts;  // logical offsets, by place in the part
};

std::string describe(const StripeGeometry& g) {
  return "S=" + std::to_string(g.stripe_depth_bytes) + " N=" + std::to_string(g.device_count) +
         " f=" + std::to_string(g.first_device);
}

// Every depth of a few blocks; the model walks bytes, so sizes stay small.
std::vector<StripeGeometry> small_geometries() {
  std::vector<StripeGeometry> all;
  for (uint64_t blocks = 1; blocks <= 2; ++blocks) {
    for (uint32_t count = kDeviceCountMin; count <= 5; ++count) {
      for (uint32_t first = 0; first < count; ++first) {
        all.push_back({.stripe_depth_bytes = blocks * kBlockSize,
                       .device_count = count,
                       .first_device = first});
      }
    }
  }
  return all;
}

TEST(StripeTest, LocatesEveryByteOfSmallGeometriesWhereTheModelPutsIt) {
  for (const StripeGeometry& g : small_geometries()) {
    const StripeMap map(g);
    const Model model(g, 3 * g.stripe_depth_bytes * g.device_count + 777);
    for (uint64_t offset = 0; offset < model.places.size(); ++offset) {
      ASSERT_EQ(map.locate(offset), model.places[offset]) << describe(g) << " at " << offset;
      ASSERT_EQ(map.logical_offset(model.places[offset]), offset) << describe(g);
    }
  }
}

TEST(StripeTest, PartSizesAndTheirInverseAgreeWithTheModel) {
  for (const StripeGeometry& g : small_geometries()) {
    const StripeMap map(g);
    std::vector<uint64_t> part_sizes(g.device_count, 0);
    const uint64_t size_max = 2 * g.stripe_depth_bytes * g.device_count + 9;
    for (uint64_t size = 0; size <= size_max; ++size) {
      for (uint32_t d = 0; d < g.device_count; ++d) {
        ASSERT_EQ(map.part_size(d, size), part_sizes[d]) << describe(g) << " size " << size;
      }
      ASSERT_EQ(map.logical_size(part_sizes), size) << describe(g);
      ++part_sizes[(size / g.stripe_depth_bytes + g.first_device) % g.device_count];
    }
  }
}

// Requests that begin and end a byte around every boundary.
std::vector<uint64_t> interesting_offsets(const StripeGeometry& g, uint64_t end) {
  std::vector<uint64_t> offsets;
  for (uint64_t unit = 0; unit * g.stripe_depth_bytes <= end; ++unit) {
    const uint64_t at = unit * g.stripe_depth_bytes;
    if (at > 0) offsets.push_back(at - 1);
    offsets.push_back(at);
    offsets.push_back(at + 1);
  }
  return offsets;
}

TEST(StripeTest, SegmentsOfARequestTileItAndStayWithinOneUnit) {
  for (const StripeGeometry& g : small_geometries()) {
    const StripeMap map(g);
    const std::vector<uint64_t> offsets =
        interesting_offsets(g, 2 * g.stripe_depth_bytes * g.device_count);
    for (const uint64_t begin : offsets) {
      for (const uint64_t end : offsets) {
        ByteRange rest{.offset = begin, .length_bytes = end > begin ? end - begin : 0};
        while (rest.length_bytes > 0) {
          const Segment segment = map.first_segment(rest);
          ASSERT_GT(segment.length_bytes, 0u);
          ASSERT_EQ(segment.logical_offset, rest.offset);
          const PartLocation last = map.locate(rest.offset + segment.length_bytes - 1);
          ASSERT_EQ(last.device_index, segment.device_index) << describe(g);
          ASSERT_EQ(last.part_offset, segment.part_offset + segment.length_bytes - 1);
          rest.offset += segment.length_bytes;
          rest.length_bytes -= segment.length_bytes;
        }
      }
    }
  }
}

TEST(StripeTest, ARequestNeedsOneRunOfEachPartWithExactlyItsBytes) {
  for (const StripeGeometry& g : small_geometries()) {
    const StripeMap map(g);
    const Model model(g, 3 * g.stripe_depth_bytes * g.device_count);
    const std::vector<uint64_t> offsets =
        interesting_offsets(g, 2 * g.stripe_depth_bytes * g.device_count);
    for (const uint64_t begin : offsets) {
      for (const uint64_t end : offsets) {
        if (end < begin) continue;
        const ByteRange request{.offset = begin, .length_bytes = end - begin};
        for (uint32_t d = 0; d < g.device_count; ++d) {
          const ByteRange run = map.run(d, request);
          const std::vector<uint64_t>& part = model.parts[d];
          ASSERT_EQ(run.offset,
                    static_cast<uint64_t>(std::lower_bound(part.begin(), part.end(), begin) -
                                          part.begin()));
          ASSERT_EQ(run.end(), static_cast<uint64_t>(
                                   std::lower_bound(part.begin(), part.end(), end) - part.begin()))
              << describe(g) << " [" << begin << ", " << end << ") device " << d;
        }
      }
    }
  }
}

TEST(StripeTest, RandomLargeGeometriesMapThereAndBack) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20000; ++round) {
    StripeGeometry g;
    g.stripe_depth_bytes = kBlockSize * (1 + random() % (1u << (random() % 20)));
    g.device_count = kDeviceCountMin + static_cast<uint32_t>(random() % (kDeviceCountMax - 1));
    g.first_device = static_cast<uint32_t>(random() % g.device_count);
    ASSERT_TRUE(g.valid());
    const StripeMap map(g);
    const uint64_t offset = random() >> (random() % 40 + 14);
    const PartLocation place = map.locate(offset);
    ASSERT_EQ(map.logical_offset(place), offset) << "seed " << seed << ' ' << describe(g);
    ASSERT_EQ(place.device_index,
              (offset / g.stripe_depth_bytes + g.first_device) % g.device_count);
    // The parts of a file of `offset` bytes add up to it.
    uint64_t total = 0;
    std::vector<uint64_t> sizes;
    for (uint32_t d = 0; d < g.device_count; ++d) {
      sizes.push_back(map.part_size(d, offset));
      total += sizes.back();
    }
    ASSERT_EQ(total, offset) << "seed " << seed << ' ' << describe(g);
    ASSERT_EQ(map.logical_size(sizes), offset) << "seed " << seed << ' ' << describe(g);
  }
}

TEST(StripeTest, GeometriesOutOfRangeAreNotValid) {
  const StripeGeometry good{.stripe_depth_bytes = 4096, .device_count = 2, .first_device = 1};
  EXPECT_TRUE(good.valid());
  for (const StripeGeometry bad :
       {StripeGeometry{0, 2, 0}, StripeGeometry{4095, 2, 0}, StripeGeometry{4096, 1, 0},
        StripeGeometry{4096, 65, 0}, StripeGeometry{4096, 2, 2},
        StripeGeometry{kStripeDepthMax + 4096, 2, 0}}) {
    EXPECT_FALSE(bad.valid()) << describe(bad);
  }
}

}  // namespace
}  // namespace graphlane
